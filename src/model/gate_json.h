// Gates in JSON: the "gate" section of config.json, and gates.json of an adapter.
#pragma once

#include "filigree/model.h"
#include "json/object.h"

namespace filigree {

// Of a section {"bias": one number, or rows of one a head}. Throws Error where it does not fit the
// model.
GateConfig read_gate(const JsonObject& section, const ModelConfig& config);

// Null where there is no gate.
nlohmann::json gate_json(const ModelConfig& config);

}  // namespace filigree
