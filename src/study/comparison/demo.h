// The whole story on the two reference models, in about a minute on two cores: both are measured on
// held-out text, compared on a handful of prompts and searched for the circuits of a few tasks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "study/comparison/comparison.h"
#include "study/model_places.h"

namespace filigree::study {

struct DemoRequest {
  std::string dense = kReferenceDense, sparse = kReferenceSparse;  // folders or names
  std::filesystem::path folder = "demo";
  // Prose to measure the models on; nothing: held-out.txt beside the dense model, if there.
  std::optional<EvaluationText> prose = {};
  std::int64_t tokens = 4096;  // of each held-out text
  std::int64_t length = 256;   // of its windows, at most
  std::vector<std::string> tasks = {"ioi", "greater-than"};
  // Of a task. The time is nearly proportional; of 16 answers between two, 14 right ones are better
  // than chance.
  std::int64_t task_prompts = 16;
  std::vector<figure::Format> formats = {figure::Format::kSvg, figure::Format::kPng};
  FigureStyle style = {};
  NamedTexts made = {};  // how the page came to be
};

struct DemoResult {
  ComparisonResult comparison = {};
  double level = 0.0;  // of the effect, that circuits explain
  double seconds = 0.0;
};

// Loads each model once. Throws Error before anything is written for models, tasks and texts that
// there are not; a task that the models' tokenizer cuts so that it cannot be asked is left out, and
// the result says why.
DemoResult run_demo(const DemoRequest& request, const Context& context);

Json to_json(const DemoResult& result);

}  // namespace filigree::study
