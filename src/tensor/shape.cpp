#include "filigree/error.h"
#include "filigree/tensor.h"

namespace filigree {
namespace {

std::string listed(std::span<const std::int64_t> extents) {
  std::string text = "[";
  for (std::size_t i = 0; i < extents.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> extents) {
  require(extents.size() <= kMaxRank, "shape: rank {} is above {}", extents.size(), kMaxRank);
  rank_ = static_cast<int>(extents.size());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    require(extents[i] >= 0, "shape: extent {} of axis {} is negative", extents[i], i);
    extents_[i] = extents[i];
    if (__builtin_mul_overflow(elements_, extents[i], &elements_))
      fail("shape: {} has more elements than 64 bits can count", listed(extents));
  }
}

int Shape::checked_axis(int axis) const {
  const int resolved = axis < 0 ? axis + rank_ : axis;
  if (resolved < 0 || resolved >= rank_) fail("shape: {} has no axis {}", to_string(), axis);
  return resolved;
}

std::int64_t Shape::outer(int axis) const {
  const int resolved = checked_axis(axis);
  std::int64_t product = 1;
  for (int i = 0; i < resolved; ++i) product *= extents_[static_cast<std::size_t>(i)];
  return product;
}

std::int64_t Shape::inner(int axis) const {
  std::int64_t product = 1;
  for (int i = checked_axis(axis) + 1; i < rank_; ++i)
    product *= extents_[static_cast<std::size_t>(i)];
  return product;
}

std::string Shape::to_string() const { return listed(extents()); }

}  // namespace filigree
