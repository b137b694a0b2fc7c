#include "model/stored_parameters.h"

#include <algorithm>
#include <utility>

#include "filigree/error.h"
#include "model/gguf_families.h"

namespace filigree {
namespace {

Tensor transposed(const Tensor& value) {
  const std::int64_t rows = value.size(0), columns = value.size(1);
  Tensor result = Tensor::empty({columns, rows});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      result.mutable_f32()[j * rows + i] = value.f32()[i * columns + j];
  return result;
}

// Of each head [first, second] rows (or numbers) become [second, first].
Tensor with_exchanged_rows(const Tensor& value, std::int64_t heads, std::int64_t first,
                           std::int64_t second) {
  Tensor result = value.like(value.shape());
  const std::int64_t row = value.elements() / (heads * first * second);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < first; ++i)
      for (std::int64_t j = 0; j < second; ++j)
        std::copy_n(value.f32() + ((h * first + i) * second + j) * row, row,
                    result.mutable_f32() + ((h * second + j) * first + i) * row);
  return result;
}

Tensor plus(const Tensor& value, float number) {
  Tensor result = value.like(value.shape());
  std::transform(value.f32(), value.f32() + value.elements(), result.mutable_f32(),
                 [&](float x) { return x + number; });
  return result;
}

// From the form of a file, or to it.
Tensor in_other_form(StoredForm form, const ModelConfig& config, const Tensor& value,
                     bool to_file) {
  const auto paired = [&](std::int64_t heads) {
    const std::int64_t half = config.head_width / 2;
    return with_exchanged_rows(value, heads, to_file ? 2 : half, to_file ? half : 2);
  };
  switch (form) {
    case StoredForm::kTransposed: return value.shape().rank() == 2 ? transposed(value) : value;
    case StoredForm::kPairedQueries: return paired(config.heads);
    case StoredForm::kPairedKeys: return paired(config.key_heads);
    case StoredForm::kPlusOne: return plus(value, to_file ? 1.0f : -1.0f);
    case StoredForm::kPlain:
    case StoredForm::kGroupedHeads: break;  // this program's own order
  }
  return value;
}

}  // namespace

std::vector<StoredParameter> parameters_of(const Checkpoint& checkpoint,
                                           const ModelConfig& config) {
  std::vector<StoredParameter> parameters = checkpoint.parameters();
  if (!checkpoint.is_gguf()) return parameters;
  const GgufFamily& family = gguf_family_of(config.family, checkpoint.folder().string());
  std::vector<StoredParameter> named;
  for (StoredParameter& parameter : parameters) {
    GgufParameter found = parameter_of(family, parameter.name);
    if (found.name.empty()) continue;
    parameter.name = std::move(found.name);
    parameter.form = found.form;
    named.push_back(std::move(parameter));
  }
  return named;
}

std::vector<std::int64_t> stored_shape(const ParameterSpec& spec, StoredForm form) {
  const std::span<const std::int64_t> extents = spec.stored_shape().extents();
  std::vector<std::int64_t> shape(extents.begin(), extents.end());
  if (form == StoredForm::kTransposed) std::reverse(shape.begin(), shape.end());
  return shape;
}

Tensor from_stored(const ParameterSpec& spec, StoredForm form, const ModelConfig& config,
                   const Tensor& value) {
  return form == StoredForm::kPlain ? in_our_order(spec, value)
                                    : in_other_form(form, config, value, false);
}

Tensor to_stored(const ParameterSpec& spec, StoredForm form, const ModelConfig& config,
                 const Tensor& value) {
  return form == StoredForm::kPlain ? in_file_order(spec, value)
                                    : in_other_form(form, config, value, true);
}

}  // namespace filigree
