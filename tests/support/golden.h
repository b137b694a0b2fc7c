// Stored results of PyTorch and transformers (tests/golden), as tensors.
#pragma once

#include <string>

#include "filigree/tensor.h"
#include "io/safetensors.h"
#include "support/files.h"

namespace filigree {

inline Tensor golden_tensor(const SafetensorsFile& file, const std::string& name) {
  const TensorView& view = file.at(name);
  const Shape shape(view.shape);
  const auto count = static_cast<std::size_t>(shape.elements());
  Tensor tensor = Tensor::empty(shape, view.dtype() == DType::kI32 ? DType::kI32 : DType::kF32);
  if (tensor.dtype() == DType::kI32)
    read_i32(view, {tensor.mutable_i32(), count});
  else
    read_f32(view, {tensor.mutable_f32(), count});
  return tensor;
}

}  // namespace filigree
