// The one policy about numbers that are not finite: a study whose result has any does not give it
// away. It fails, and says where the first of them came from.
#pragma once

#include <string>

#include "filigree/model/model.h"
#include "filigree/study/loaded_model.h"

namespace filigree::study {

// "the tensor 'wte.weight' holds such values", or "the first is in 'blocks.3.hook_mlp_out' at token
// 5", as a plain run of the model on `ids` ([batch, tokens]) finds it.
std::string source_of_not_finite(const Model& model, const Tensor& ids);

// Throws Error. `what` is "the loss", "the statistics".
[[noreturn]] void fail_not_finite(const std::string& what, const std::string& name,
                                  const Model& model, const Tensor& ids);

}  // namespace filigree::study
