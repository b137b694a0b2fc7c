// The gates of a model's heads, moved and moved back.
#pragma once

#include <cstddef>
#include <vector>

#include "filigree/model.h"

namespace filigree {

class HeadGates {
 public:
  // `model` must have a gate; one shared bias becomes one for every head.
  explicit HeadGates(Model& model);

  std::size_t heads() const { return gate_.bias.size(); }  // of all layers

  // The biases as they were, and `scale` times the shift of each head, layer by layer.
  void move(const std::vector<float>& shifts, double scale = 1.0);

 private:
  Model& model_;
  GateConfig gate_;
};

}  // namespace filigree
