// The extents of a tensor: at most six, each at least 0, row-major.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace filigree {

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

}  // namespace filigree
