// The one policy about numbers that are not finite: a study whose result has any does not give it
// away. It fails, and says where the first of them came from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "filigree/model.h"
#include "filigree/study.h"

namespace filigree::study {

// "the tensor 'wte.weight' of the model holds such values"; "" where all weights are finite.
std::string tensor_not_finite(const Model& model);
// The same, or "the first is in 'blocks.3.hook_mlp_out' at token 5", as a plain run of the model on
// `ids` ([batch, tokens]) finds it; "" where such a run has none.
std::string source_of_not_finite(const Model& model, const Tensor& ids);

// Where they come from when a plain run has none.
inline constexpr const char* kWhatWasChanged =
    "a run of the model that nothing changes has none, so it is what was changed";
std::string what_the_transcoder_gave(const std::string& features);

// Throws Error. `what` is "the loss", "the statistics".
[[noreturn]] void fail_not_finite(const std::string& what, const std::string& name,
                                  const Model& model, const Tensor& ids,
                                  const std::string& otherwise = kWhatWasChanged);

// Throws it where one of the numbers that came of `ids` is not finite.
void require_finite(std::span<const double> numbers, const std::string& what,
                    const LoadedModel& model, const std::vector<TokenId>& ids,
                    const std::string& otherwise = kWhatWasChanged);
void require_finite(std::span<const float> numbers, const std::string& what,
                    const LoadedModel& model, const std::vector<TokenId>& ids,
                    const std::string& otherwise = kWhatWasChanged);

bool all_finite(std::span<const double> numbers);
bool all_finite(std::span<const float> numbers);

}  // namespace filigree::study
