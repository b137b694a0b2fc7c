// The graphs of tests/golden/clt, "dense" and "gated", traced by us.
#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "filigree/trace.h"
#include "json/json.h"
#include "support/golden_transcoder.h"

namespace filigree {

struct GoldenGraph {
  SafetensorsFile file;
  nlohmann::json facts;
  std::unique_ptr<Model> model;
  FrozenModel frozen;
  GraphSources sources;
  std::vector<GraphTarget> targets;
  AttributionGraph graph;

  Tensor tensor(const char* name) const { return golden_tensor(file, name); }
  std::vector<double> numbers(const char* name) const {
    return facts.at("graph").at(name).get<std::vector<double>>();
  }
};

inline GoldenGraph golden_graph(const std::string& name, const Placement& placement = {}) {
  GoldenGraph golden{clt_file((name + ".safetensors").c_str()),
                     read_json(golden_folder() / "clt" / (name + ".json")),
                     load_model(golden_folder() / "clt" / "model", {.placement = placement}),
                     {},
                     {},
                     {},
                     {}};
  if (!golden.facts.at("gate_bias").is_null()) {
    GateConfig gate;
    for (const auto& layer : golden.facts.at("gate_bias"))
      for (const auto& bias : layer) gate.bias.push_back(bias.get<float>());
    golden.model->set_gate(gate);
  }
  const Tensor ids = golden.tensor("input_ids");
  const auto dictionary = dictionary_of(golden_transcoder());
  golden.frozen =
      freeze_model(*golden.model, std::span(ids.i32(), static_cast<std::size_t>(ids.elements())),
                   dictionary->hooks().input, dictionary->hooks().output);
  golden.sources = graph_sources(golden.frozen, *dictionary);
  golden.targets = likeliest_logits(golden.frozen, 0.95, 3);
  golden.graph = attribution_graph(golden.frozen, golden.sources, golden.targets);
  return golden;
}

}  // namespace filigree
