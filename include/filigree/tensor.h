// Tensors: shape, type, device and numbers.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "filigree/device.h"
#include "filigree/runtime.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// The extents of a tensor: at most six, each at least 0, row-major.

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // a scalar: rank 0, one element
  // Throws Error for too many extents, a negative one, or a product that overflows.
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t elements() const { return elements_; }

  // Extent of an axis; negative axes count from the end. Throws Error when there is no such axis.
  std::int64_t operator[](int axis) const {
    return extents_[static_cast<std::size_t>(checked_axis(axis))];
  }
  int checked_axis(int axis) const;

  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }

  // Elements before and after `axis`: the tensor as [outer, extent, inner].
  std::int64_t outer(int axis) const;
  std::int64_t inner(int axis) const;

  std::string to_string() const;  // "[2, 17, 48]"

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.extents_ == b.extents_;
  }

 private:
  std::array<std::int64_t, kMaxRank> extents_ = {};
  int rank_ = 0;
  std::int64_t elements_ = 1;
};

// -------------------------------------------------------------------------------------------------
// A contiguous, row-major array in shared memory.
//
// Copying a Tensor shares the memory; clone() copies it. Views (reshape, rows) share it too. There
// are no strides: kernels that need transposes or column slices take strides of their own.
//
// A tensor lies on one device. Values are read and written on the CPU: f32(), values(), raw() and
// their like throw Error for a tensor on the GPU, which to(DeviceKind::kCpu) copies. Operations
// hand memory to the kernels of its device as data<T>(), which checks the element type only.

class Tensor {
 public:
  Tensor() = default;  // undefined: no memory, defined() is false

  static Tensor empty(const Shape& shape, DType dtype = DType::kF32,
                      DeviceKind device = DeviceKind::kCpu);  // contents undefined
  static Tensor zeros(const Shape& shape, DType dtype = DType::kF32,
                      DeviceKind device = DeviceKind::kCpu);
  static Tensor full(const Shape& shape, float value, DeviceKind device = DeviceKind::kCpu);
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
  DeviceKind device() const { return buffer_ ? buffer_->device() : DeviceKind::kCpu; }
  bool on_gpu() const { return device() == DeviceKind::kCuda; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype_); }
  bool writable() const { return defined() && buffer_->writable(); }
  // True when no other Tensor shares the memory, so that it may be overwritten.
  bool unique() const { return buffer_.use_count() == 1; }

  // An empty tensor of another shape on the same device, of the same element type or of `dtype`.
  Tensor like(const Shape& shape) const { return empty(shape, dtype_, device()); }
  Tensor like(const Shape& shape, DType dtype) const { return empty(shape, dtype, device()); }

  // For kernels' arguments: an address on the tensor's device. Throws Error when the element type
  // is another, or (mutable) the memory read-only.
  template <typename T>
  const T* data() const {
    expect(kDTypeOf<T>);
    return reinterpret_cast<const T*>(buffer_->data() + offset_);
  }
  template <typename T>
  T* mutable_data() {
    expect(kDTypeOf<T>);
    return reinterpret_cast<T*>(buffer_->mutable_data() + offset_);
  }
  // The same without a type, for copies.
  const std::byte* bytes_on_device() const;
  std::byte* mutable_bytes_on_device();

  // Typed access on the CPU; throws Error when the element type is another, the tensor lies on the
  // GPU, or (mutable) the memory is read-only.
  const float* f32() const;
  float* mutable_f32();
  const std::int32_t* i32() const;
  std::int32_t* mutable_i32();
  const std::byte* raw() const;
  std::byte* mutable_raw();
  std::span<const float> values() const { return {f32(), static_cast<std::size_t>(elements())}; }

  // The only element of a one-element f32 tensor, copied from the GPU if need be (which waits for
  // the work that computes it).
  float item() const;

  // Same memory, other extents; the number of elements must agree.
  Tensor reshape(const Shape& shape) const;
  // Rows [begin, end) of the first axis, same memory.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  Tensor clone() const;
  // Converted copy; the same tensor when the type is already `dtype`. On the GPU between f32 and
  // bf16 only.
  Tensor to(DType dtype) const;
  // Copy on another device; the same tensor when it is there already.
  Tensor to(DeviceKind device) const;
  // As f32 on the CPU.
  Tensor on_host() const { return to(DeviceKind::kCpu).to(DType::kF32); }
  // Overwrites this tensor with another of the same shape and type, on either device.
  void copy_from(const Tensor& other);

 private:
  Tensor(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, std::size_t offset);
  void expect(DType dtype) const;
  void expect_on_cpu() const;

  Shape shape_;
  DType dtype_ = DType::kF32;
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;  // bytes
};

}  // namespace filigree
