// A contiguous, row-major array in shared memory.
//
// Copying a Tensor shares the memory; clone() copies it. Views (reshape, rows) share it too. There
// are no strides: kernels that need transposes or column slices take strides of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/dtype.h"
#include "tensor/shape.h"

namespace filigree {

class Tensor {
 public:
  Tensor() = default;  // undefined: no memory, defined() is false

  static Tensor empty(const Shape& shape, DType dtype = DType::kF32);  // contents undefined
  static Tensor zeros(const Shape& shape, DType dtype = DType::kF32);
  static Tensor full(const Shape& shape, float value);
  static Tensor from(const Shape& shape, std::span<const float> values);
  static Tensor from_ids(const Shape& shape, std::span<const std::int32_t> ids);
  static Tensor scalar(float value) { return full(Shape{}, value); }
  // A read-only view of outside memory, for example of a mapped file.
  static Tensor borrow(const Shape& shape, DType dtype, std::shared_ptr<const void> owner,
                       const void* data);

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::int64_t size(int axis) const { return shape_[axis]; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype_); }
  bool writable() const { return defined() && buffer_->writable(); }
  // True when no other Tensor shares the memory, so that it may be overwritten.
  bool unique() const { return buffer_.use_count() == 1; }

  // Typed access; throws Error when the element type is another, or (mutable) the memory read-only.
  const float* f32() const;
  float* mutable_f32();
  const std::int32_t* i32() const;
  std::int32_t* mutable_i32();
  const std::byte* raw() const;
  std::byte* mutable_raw();
  std::span<const float> values() const { return {f32(), static_cast<std::size_t>(elements())}; }

  // The only element of a one-element f32 tensor.
  float item() const;

  // Same memory, other extents; the number of elements must agree.
  Tensor reshape(const Shape& shape) const;
  // Rows [begin, end) of the first axis, same memory.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  Tensor clone() const;
  // Converted copy; the same tensor when the type is already `dtype`.
  Tensor to(DType dtype) const;

 private:
  Tensor(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, std::size_t offset);
  void expect(DType dtype) const;

  Shape shape_;
  DType dtype_ = DType::kF32;
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;  // bytes
};

}  // namespace filigree
