#include "train/head_gates.h"

#include "filigree/error.h"

namespace filigree {

HeadGates::HeadGates(Model& model) : model_(model), gate_(model.config().gate) {
  require(gate_.on(), "gates: the model has none to adjust");
  const auto heads = static_cast<std::size_t>(model.config().layers * model.config().heads);
  if (gate_.bias.size() == 1) gate_.bias.resize(heads, gate_.bias[0]);
}

void HeadGates::move(const std::vector<float>& shifts, double scale) {
  GateConfig moved = gate_;
  for (std::size_t h = 0; h < heads(); ++h) moved.bias[h] += static_cast<float>(scale) * shifts[h];
  model_.set_gate(moved);
}

}  // namespace filigree
