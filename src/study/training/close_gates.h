// A sparse model with fewer open edges, without training: the gates of the heads whose edges are
// worth least are lowered on held-out text (train/gate_closing.h).
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "io/matrix_type.h"
#include "study/evaluation/evaluation.h"
#include "train/gate_closing.h"

namespace filigree::study {

struct CloseGatesRequest {
  std::string model = {};  // folder or name
  std::variant<EvaluationText, EvaluationShards> data = {};
  WindowOptions windows = {};
  double most_edges = 0.0;  // the share of the edges that may be open
  std::filesystem::path out = {};
  MatrixType dtype = MatrixType::kF32;  // of the weights
};

struct ClosedGates {
  CloseGatesRequest request;
  GateClosing closing;
  std::int64_t layer_heads = 0;
  std::int64_t tokens = 0;  // that every measurement predicted

  std::string head(std::size_t index) const;  // of those of all layers, "L3H7"
};

// Throws RequestError unless the share lies between 0 and 1, and Error when `out` holds a model
// already, for a model without gates, and for data that do not fit it. Writes the model also where
// the share was not reached.
ClosedGates close_gates(const CloseGatesRequest& request, const Context& context);

Json to_json(const ClosedGates& closed);

}  // namespace filigree::study
