// Evaluations of one model or of several, side by side, as tables and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/program/session.h"
#include "filigree/train/evaluation.h"

namespace filigree::cli {

struct EvaluatedModel {
  std::string label;  // for tables
  std::string model;  // as the user named it
  Evaluation evaluation;
  std::int64_t length = 0;  // tokens a window
  std::int64_t bytes = 0;   // of text that the targets stand for; 0: not known
  double seconds = 0.0;

  double bits_per_byte() const;
};

// evaluate() with a bar on stderr; fills in all but the names. Throws Interrupted between passes.
EvaluatedModel evaluate_with_bar(const Model& model, const EvaluationWindows& windows,
                                 const std::string& label, const Session& session);

// One row a model; from the second on with the change against the first. "±" is one standard error.
std::string evaluation_table(const std::vector<EvaluatedModel>& models);
// Active edges and keys per query: one row a layer.
std::string layer_table(const std::vector<EvaluatedModel>& models);
// Active edges: for each model one row a layer and one column a head.
std::string head_tables(const std::vector<EvaluatedModel>& models);

// Everything, layers and heads too.
Json evaluation_json(const std::vector<EvaluatedModel>& models);

// "0.0583 %".
std::string percent(double share);

}  // namespace filigree::cli
