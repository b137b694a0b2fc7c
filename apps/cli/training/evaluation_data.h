// The held-out text or token shards that commands measure models on, as options.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <variant>

#include "apps/cli/program/session.h"
#include "filigree/evaluation_study.h"

namespace filigree::cli {

struct EvaluationDataOptions {
  std::string text, data;  // one of both
  DataSplit split = DataSplit::kHeldOut;
  bool replace_invalid = false;
};

void add_evaluation_data(CLI::App& app, EvaluationDataOptions& options);

// Throws UsageError unless one of text and shards is given.
std::variant<study::EvaluationText, study::EvaluationShards> read_evaluation_data(
    const EvaluationDataOptions& options, const Session& session);

// Entries "text", "data" and "split", null where they were not given.
void add_evaluation_data(Json& json, const EvaluationDataOptions& options);

}  // namespace filigree::cli
