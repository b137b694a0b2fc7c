#include "study/not_finite.h"

#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

template <typename Number>
std::int64_t first_not_finite(std::span<const Number> numbers) {
  return std::find_if(numbers.begin(), numbers.end(),
                      [](Number number) { return !std::isfinite(number); }) -
         numbers.begin();
}

template <typename Number>
void require_all_finite(std::span<const Number> numbers, const std::string& what,
                        const LoadedModel& model, const std::vector<TokenId>& ids,
                        const std::string& otherwise) {
  if (!all_finite(numbers))
    fail_not_finite(what, model.label(), model.model(),
                    Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids), otherwise);
}

}  // namespace

bool all_finite(std::span<const double> numbers) {
  return first_not_finite(numbers) == std::ssize(numbers);
}
bool all_finite(std::span<const float> numbers) {
  return first_not_finite(numbers) == std::ssize(numbers);
}

std::string tensor_not_finite(const Model& model) {
  for (const auto* list : {&model.parameters(), &model.lora_parameters()})
    for (const NamedParameter& parameter : *list)
      if (!all_finite(parameter.variable.value().to(DeviceKind::kCpu).to(DType::kF32).values()))
        return fmt::format("the tensor '{}' of the model holds such values",
                           printable(parameter.name));
  return "";
}

std::string source_of_not_finite(const Model& model, const Tensor& ids) {
  if (std::string tensor = tensor_not_finite(model); !tensor.empty()) return tensor;
  std::string place;
  Taps taps;
  const std::int64_t tokens = ids.size(-1);
  for (const std::string& name : model.tap_names()) {
    if (name.ends_with("scores")) continue;  // minus infinity where a query may not look
    taps.watch(name, [&](std::string_view tap, const Tensor& value) {
      if (!place.empty()) return;
      const std::int64_t at = first_not_finite(value.values());
      if (at == value.elements()) return;
      place = fmt::format("the first is in '{}'", tap);
      // Activations are [batch, tokens, ...].
      if (value.shape().rank() >= 3 && value.size(1) == tokens)
        place += fmt::format(" at token {}",
                             at / (value.elements() / (value.size(0) * tokens)) % tokens);
    });
  }
  const Tensor logits = model.forward(ids, {.taps = &taps}).value();
  if (place.empty() && !all_finite(logits.values())) place = "the first is in the logits";
  return place;
}

std::string what_the_transcoder_gave(const std::string& features) {
  return fmt::format("a run of the plain model has none, so it is what the transcoder '{}' gives",
                     printable(features));
}

void fail_not_finite(const std::string& what, const std::string& name, const Model& model,
                     const Tensor& ids, const std::string& otherwise) {
  const std::string source = source_of_not_finite(model, ids);
  fail("{} of '{}' is not finite: {}", what, printable(name), source.empty() ? otherwise : source);
}

void require_finite(std::span<const double> numbers, const std::string& what,
                    const LoadedModel& model, const std::vector<TokenId>& ids,
                    const std::string& otherwise) {
  require_all_finite(numbers, what, model, ids, otherwise);
}
void require_finite(std::span<const float> numbers, const std::string& what,
                    const LoadedModel& model, const std::vector<TokenId>& ids,
                    const std::string& otherwise) {
  require_all_finite(numbers, what, model, ids, otherwise);
}

}  // namespace filigree::study
