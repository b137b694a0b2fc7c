#include "filigree/study/not_finite.h"

#include <algorithm>
#include <cmath>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::study {
namespace {

std::int64_t first_not_finite(const Tensor& values) {
  const std::span<const float> all = values.values();
  return std::find_if(all.begin(), all.end(), [](float value) { return !std::isfinite(value); }) -
         all.begin();
}

}  // namespace

std::string source_of_not_finite(const Model& model, const Tensor& ids) {
  for (const auto* list : {&model.parameters(), &model.lora_parameters()})
    for (const NamedParameter& parameter : *list) {
      const Tensor here = parameter.variable.value().to(DeviceKind::kCpu).to(DType::kF32);
      if (first_not_finite(here) < here.elements())
        return fmt::format("the tensor '{}' of the model holds such values",
                           printable(parameter.name));
    }
  std::string place;
  Taps taps;
  const std::int64_t tokens = ids.size(-1);
  for (const std::string& name : model.tap_names()) {
    if (name.ends_with("scores")) continue;  // minus infinity where a query may not look
    taps.watch(name, [&](std::string_view tap, const Tensor& value) {
      if (!place.empty()) return;
      const std::int64_t at = first_not_finite(value);
      if (at == value.elements()) return;
      place = fmt::format("the first is in '{}'", tap);
      // Activations are [batch, tokens, ...].
      if (value.shape().rank() >= 3 && value.size(1) == tokens)
        place += fmt::format(" at token {}",
                             at / (value.elements() / (value.size(0) * tokens)) % tokens);
    });
  }
  const Tensor logits = model.forward(ids, {.taps = &taps}).value();
  if (!place.empty()) return place;
  return first_not_finite(logits) < logits.elements()
             ? "the first is in the logits"
             : "a run of the model that nothing changes has none, so it is what was changed";
}

void fail_not_finite(const std::string& what, const std::string& name, const Model& model,
                     const Tensor& ids) {
  fail("{} of '{}' is not finite: {}", what, printable(name), source_of_not_finite(model, ids));
}

}  // namespace filigree::study
