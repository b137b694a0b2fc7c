#include "model/gate_json.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

GateConfig read_gate(const JsonObject& section, const ModelConfig& config) {
  GateConfig gate;
  const nlohmann::json bias =
      section.raw().contains("bias") ? section.raw()["bias"] : nlohmann::json();
  const auto take = [&](const nlohmann::json& value) {
    require(value.is_number() && std::isfinite(value.get<float>()),
            "{}: gate.bias holds {}, which is not a finite number", section.source(),
            printable(value.dump()));
    gate.bias.push_back(value.get<float>());
  };
  if (!bias.is_array()) {
    section.number("bias", -1e6, 1e6);
    take(bias);
    return gate;
  }
  bool fits = static_cast<std::int64_t>(bias.size()) == config.layers;
  for (const nlohmann::json& row : bias)
    fits = fits && row.is_array() && static_cast<std::int64_t>(row.size()) == config.heads;
  require(fits, "{}: gate.bias must be one number or {} rows of {}", section.source(),
          config.layers, config.heads);
  for (const nlohmann::json& row : bias)
    for (const nlohmann::json& value : row) take(value);
  return gate;
}

nlohmann::json gate_json(const ModelConfig& config) {
  const std::vector<float>& bias = config.gate.bias;
  if (bias.empty()) return nullptr;
  if (bias.size() == 1) return {{"bias", bias[0]}};
  nlohmann::json rows = nlohmann::json::array();
  const auto heads = static_cast<std::ptrdiff_t>(config.heads);
  for (auto row = bias.begin(); row != bias.end(); row += heads)
    rows.push_back(std::vector<float>(row, row + heads));
  return {{"bias", std::move(rows)}};
}

}  // namespace filigree
