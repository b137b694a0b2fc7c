// Text to look at a model's heads on where the user names none: prose that a model's folder brings
// along (held-out.txt), and sentences of the tasks in combinations that training never saw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study/loaded_model.h"

namespace filigree::study {

// A text that a model's folder may bring along, which the model was not trained on.
inline constexpr const char* kHeldOutFile = "held-out.txt";

// held-out.txt of the first of the folders that has it, else of the bundled dense model; nothing
// where there is neither.
std::optional<std::filesystem::path> find_held_out_text(
    std::span<const std::filesystem::path> model_folders);

struct SampleText {
  std::vector<TokenId> ids = {};
  std::string source = {};  // "held-out.txt and sentences of the tasks", "'prose.txt'"
};

// At most `tokens` of the file, or where it is empty half of them prose and the rest sentences.
// Throws Error for a model without a tokenizer and for a text that is empty or no UTF-8.
SampleText sample_text(const LoadedModel& model, const std::filesystem::path& file,
                       std::int64_t tokens, std::uint64_t seed);

}  // namespace filigree::study
