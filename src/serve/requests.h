// The bodies of requests as typed values: read through src/json, bounded, and unknown keys refused.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/analyze/interventions/interventions.h"
#include "filigree/analyze/maps/capture.h"
#include "filigree/json/object.h"
#include "filigree/serve/limits.h"
#include "filigree/study/circuits/model_circuits.h"
#include "filigree/study/loaded_model.h"

namespace filigree::serve {

// A prompt through some models, with changes:
//   {"prompt": "Paris is in", "models": ["dense"], "ablate": ["L6H11"], "scale": ["L7MLP=2"],
//    "patch": ["L6H11@-1=Rome is in"]}
struct PromptQuery {
  std::string prompt = {};
  std::vector<std::size_t> models = {};  // all of them unless named, by their labels
  Interventions interventions = {};
};

struct PredictQuery {
  PromptQuery run = {};
  std::size_t top = 10;
};

struct MapsQuery {
  PromptQuery run = {};
  std::string heads = "*";  // analyze/maps/head_selection.h
  MapKind kind = MapKind::kWeights;
};

struct HeadQuery {
  PromptQuery run = {};
  HeadId head = {};
};

struct CircuitQuery {
  study::CircuitRequest request = {};
  std::vector<std::size_t> models = {};
};

// Reads requests for these models. Throws Refusal for what is too large, and Error for what cannot
// be read.
class RequestReader {
 public:
  RequestReader(std::span<const study::LoadedModel> models, const Limits& limits)
      : models_(models), limits_(limits) {}

  std::string tokens(const std::string& body) const;  // the prompt
  PredictQuery predict(const std::string& body) const;
  MapsQuery maps(const std::string& body) const;
  HeadQuery head(const std::string& body) const;
  CircuitQuery circuit(const std::string& body) const;

 private:
  JsonObject object(const std::string& body, std::initializer_list<std::string_view> keys) const;
  std::string prompt(const JsonObject& object) const;
  std::vector<std::size_t> models(const JsonObject& object) const;
  Interventions interventions(const JsonObject& object) const;
  PromptQuery run(const JsonObject& object) const;

  std::span<const study::LoadedModel> models_;
  Limits limits_;
};

}  // namespace filigree::serve
