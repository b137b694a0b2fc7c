#include "filigree/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "filigree/device.h"
#include "filigree/error.h"
#include "runtime/cuda/vector_cuda.h"

namespace filigree {
namespace {

std::size_t checked_bytes(const Shape& shape, DType dtype) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), static_cast<std::int64_t>(size_of(dtype)), &bytes))
    fail("tensor: {} of {} has more bytes than 64 bits can count", shape.to_string(),
         name_of(dtype));
  return static_cast<std::size_t>(bytes);
}

}  // namespace

Tensor::Tensor(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, std::size_t offset)
    : shape_(shape), dtype_(dtype), buffer_(std::move(buffer)), offset_(offset) {}

Tensor Tensor::empty(const Shape& shape, DType dtype, DeviceKind device) {
  return Tensor(shape, dtype, Buffer::allocate(checked_bytes(shape, dtype), device), 0);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, DeviceKind device) {
  Tensor tensor = empty(shape, dtype, device);
  zero_memory(tensor.mutable_bytes_on_device(), device, tensor.bytes());
  return tensor;
}

Tensor Tensor::full(const Shape& shape, float value, DeviceKind device) {
  Tensor tensor = empty(shape, DType::kF32, device);
  if (device == DeviceKind::kCpu)
    std::fill_n(tensor.mutable_f32(), tensor.elements(), value);
  else if constexpr (kHasCuda)
    cuda::fill(tensor.mutable_data<float>(), value, tensor.elements());
  return tensor;
}

Tensor Tensor::from(const Shape& shape, std::span<const float> values) {
  require(static_cast<std::int64_t>(values.size()) == shape.elements(),
          "tensor: {} values do not fill {}", values.size(), shape.to_string());
  Tensor tensor = empty(shape);
  std::copy(values.begin(), values.end(), tensor.mutable_f32());
  return tensor;
}

Tensor Tensor::from_ids(const Shape& shape, std::span<const std::int32_t> ids) {
  require(static_cast<std::int64_t>(ids.size()) == shape.elements(),
          "tensor: {} ids do not fill {}", ids.size(), shape.to_string());
  Tensor tensor = empty(shape, DType::kI32);
  std::copy(ids.begin(), ids.end(), tensor.mutable_i32());
  return tensor;
}

Tensor Tensor::borrow(const Shape& shape, DType dtype, std::shared_ptr<const void> owner,
                      const void* data) {
  return Tensor(shape, dtype, Buffer::borrow(std::move(owner), data, checked_bytes(shape, dtype)),
                0);
}

void Tensor::expect(DType dtype) const {
  require(defined(), "tensor: used before it was given a value");
  require(dtype_ == dtype, "tensor: {} expected, {} found", name_of(dtype), name_of(dtype_));
}

void Tensor::expect_on_cpu() const {
  require(defined(), "tensor: used before it was given a value");
  if (on_gpu())
    fail(
        "tensor: the values of {} {} were asked for on the CPU, but it lies on the GPU; copy it "
        "with to(DeviceKind::kCpu) first",
        name_of(dtype_), shape_.to_string());
}

const std::byte* Tensor::bytes_on_device() const {
  require(defined(), "tensor: used before it was given a value");
  return buffer_->data() + offset_;
}

std::byte* Tensor::mutable_bytes_on_device() {
  require(defined(), "tensor: used before it was given a value");
  return buffer_->mutable_data() + offset_;
}

const float* Tensor::f32() const {
  expect(DType::kF32);
  return reinterpret_cast<const float*>(raw());
}

float* Tensor::mutable_f32() {
  expect(DType::kF32);
  return reinterpret_cast<float*>(mutable_raw());
}

const std::int32_t* Tensor::i32() const {
  expect(DType::kI32);
  return reinterpret_cast<const std::int32_t*>(raw());
}

std::int32_t* Tensor::mutable_i32() {
  expect(DType::kI32);
  return reinterpret_cast<std::int32_t*>(mutable_raw());
}

const std::byte* Tensor::raw() const {
  expect_on_cpu();
  return buffer_->data() + offset_;
}

std::byte* Tensor::mutable_raw() {
  expect_on_cpu();
  return buffer_->mutable_data() + offset_;
}

float Tensor::item() const {
  require(elements() == 1, "tensor: {} is not one number", shape_.to_string());
  return on_gpu() ? *to(DeviceKind::kCpu).f32() : *f32();
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (shape.elements() != elements())
    fail("reshape: {} does not have the {} elements of {}", shape.to_string(), elements(),
         shape_.to_string());
  return Tensor(shape, dtype_, buffer_, offset_);
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() < 1 || begin < 0 || begin > end || end > shape_[0])
    fail("rows: [{}, {}) is not within {}", begin, end, shape_.to_string());
  std::vector<std::int64_t> extents(shape_.extents().begin(), shape_.extents().end());
  extents[0] = end - begin;
  const std::size_t row_bytes = static_cast<std::size_t>(shape_.inner(0)) * size_of(dtype_);
  return Tensor(Shape(extents), dtype_, buffer_,
                offset_ + static_cast<std::size_t>(begin) * row_bytes);
}

Tensor Tensor::clone() const {
  Tensor copy = like(shape_);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& other) {
  require(other.shape_ == shape_ && other.dtype_ == dtype_,
          "tensor: {} {} cannot be copied into {} {}", name_of(other.dtype_),
          other.shape_.to_string(), name_of(dtype_), shape_.to_string());
  copy_memory(mutable_bytes_on_device(), device(), other.bytes_on_device(), other.device(),
              bytes());
}

Tensor Tensor::to(DeviceKind device) const {
  require(defined(), "tensor: used before it was given a value");
  if (device == this->device()) return *this;
  Tensor copy = empty(shape_, dtype_, device);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  require(dtype != DType::kI32 && dtype_ != DType::kI32, "tensor: cannot convert {} to {}",
          name_of(dtype_), name_of(dtype));
  require(!on_gpu() || (dtype != DType::kF16 && dtype_ != DType::kF16),
          "tensor: f16 is no type of the GPU's operations; convert {} on the CPU",
          shape_.to_string());
  if (dtype_ != DType::kF32 && dtype != DType::kF32) return to(DType::kF32).to(dtype);
  Tensor converted = like(shape_, dtype);
  if (on_gpu()) {
    if constexpr (kHasCuda) {
      if (dtype == DType::kF32)
        cuda::convert(data<Bf16>(), converted.mutable_data<float>(), elements());
      else
        cuda::convert(data<float>(), converted.mutable_data<Bf16>(), elements());
    }
    return converted;
  }
  const auto count = static_cast<std::size_t>(elements());
  if (dtype == DType::kF32) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(raw());
    (dtype_ == DType::kBf16 ? bf16_to_f32 : f16_to_f32)(from, converted.mutable_f32(), count);
  } else {
    auto* to = reinterpret_cast<std::uint16_t*>(converted.mutable_raw());
    (dtype == DType::kBf16 ? f32_to_bf16 : f32_to_f16)(f32(), to, count);
  }
  return converted;
}

}  // namespace filigree
