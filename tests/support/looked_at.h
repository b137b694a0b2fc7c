// An answer of /api/look taken apart, and what a run says of the same request.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "filigree/lens_study.h"

namespace filigree {

struct ViewedPrompt {
  study::Json models = {};
  std::vector<std::uint16_t> cells = {};
};

inline ViewedPrompt taken_apart(const std::string& body) {
  std::uint32_t length = 0;
  EXPECT_GE(body.size(), sizeof length);
  std::memcpy(&length, body.data(), sizeof length);
  EXPECT_EQ(length % 4, 0u);
  ViewedPrompt look;
  look.models = study::Json::parse(body.substr(sizeof length, length)).at("models");
  const std::string rest = body.substr(sizeof length + length);
  look.cells.resize(rest.size() / 2);
  if (!look.cells.empty()) std::memcpy(look.cells.data(), rest.data(), 2 * look.cells.size());
  return look;
}

// As `filigree run --json`.
inline study::Json run_json(const study::LoadedModel& model, const study::Json& query) {
  study::RunRequest request;
  request.prompt = query.at("prompt");
  request.top = query.value("top", std::size_t{10});
  for (const study::Json& text : query.value("ablate", study::Json::array()))
    request.interventions.add_ablations(text.get<std::string>());
  for (const study::Json& text : query.value("scale", study::Json::array()))
    request.interventions.add_scales(text.get<std::string>());
  for (const study::Json& text : query.value("patch", study::Json::array()))
    request.interventions.add_patch(text.get<std::string>());
  return to_json(study::run(request, model, {}));
}

}  // namespace filigree
