// Which heads of a gated model ever open, on a text that is named or on a sample of our own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "study/json.h"
#include "study/loaded_model.h"
#include "train/evaluation.h"

namespace filigree::study {

struct HeadsAlive {
  LivingHeads heads = {};
  std::string source = {};  // the text: "held-out.txt and sentences of the tasks"
};

// Nothing for a model without gates, all of whose heads attend to everything, and for one without a
// tokenizer, which cannot read a text.
std::optional<HeadsAlive> find_living_heads(const LoadedModel& model,
                                            const std::filesystem::path& file,
                                            const Context& context);

Json to_json(const LivingHeads& found);
Json to_json(const HeadsAlive& found);

// "23 of 144", and of those "median 1.03, largest 36.6 (L9H6)"; "-" where none lives.
std::string count_text(const LivingHeads& found);
std::string keys_text(const LivingHeads& found);

}  // namespace filigree::study
