#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "filigree/layers.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::int64_t kFewest = 256;  // positions of the first table

// Of the steps of all pairs, those that turn fast enough in the original context to stay, and the
// others less by the factor.
double llama3(double step, const RotaryScaling& scaling) {
  const double turns = scaling.original_context * step / (2.0 * M_PI);
  const double share =
      (turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
  return std::lerp(step / scaling.factor, step, std::clamp(share, 0.0, 1.0));
}

// How much of the plain step the pairs of yarn keep: all below the first bound, none above the
// second.
class YarnShare {
 public:
  YarnShare(double width, double base, const RotaryScaling& scaling) {
    // The number, not whole, of the pair that turns so often in the original context.
    const auto pair_of = [&](double turns) {
      return width * std::log(scaling.original_context / (turns * 2.0 * M_PI)) /
             (2.0 * std::log(base));
    };
    first_ = pair_of(scaling.high_frequency), last_ = pair_of(scaling.low_frequency);
    if (scaling.whole_pairs) first_ = std::floor(first_), last_ = std::ceil(last_);
    first_ = std::max(first_, 0.0), last_ = std::min(last_, width - 1.0);
    if (first_ == last_) last_ += 0.001;
  }
  double operator()(std::size_t pair) const {
    return 1.0 - std::clamp((static_cast<double>(pair) - first_) / (last_ - first_), 0.0, 1.0);
  }

 private:
  double first_, last_;
};

}  // namespace

bool RotaryScaling::same_angles(std::int64_t length, std::int64_t other) const {
  const auto beyond = [&](std::int64_t positions) {
    return std::max(static_cast<double>(positions), original_context);
  };
  if (!by_length() || beyond(length) == beyond(other)) return true;
  return kind == Kind::kLongRope && beyond(length) > original_context &&
         beyond(other) > original_context;
}

std::vector<double> rotary_steps(std::int64_t width, double base, const RotaryScaling& scaling,
                                 std::int64_t length) {
  const auto extent = static_cast<double>(width), positions = static_cast<double>(length);
  const bool beyond = positions > scaling.original_context;
  if (scaling.kind == RotaryScaling::Kind::kDynamic && beyond)
    base *= std::pow(scaling.factor * positions / scaling.original_context - (scaling.factor - 1.0),
                     extent / (extent - 2.0));
  std::optional<YarnShare> share;
  if (scaling.kind == RotaryScaling::Kind::kYarn) share.emplace(extent, base, scaling);
  std::vector<double> steps;
  for (std::size_t i = 0; 2 * static_cast<std::int64_t>(i) < width; ++i) {
    const double step = std::pow(base, -2.0 * static_cast<double>(i) / extent);
    switch (scaling.kind) {
      case RotaryScaling::Kind::kNone:
      case RotaryScaling::Kind::kDynamic: steps.push_back(step); break;
      case RotaryScaling::Kind::kLinear: steps.push_back(step / scaling.factor); break;
      case RotaryScaling::Kind::kLlama3: steps.push_back(llama3(step, scaling)); break;
      case RotaryScaling::Kind::kYarn:
        steps.push_back(std::lerp(step / scaling.factor, step, (*share)(i)));
        break;
      case RotaryScaling::Kind::kLongRope:
        steps.push_back(step / (beyond ? scaling.far : scaling.near).at(i));
        break;
    }
  }
  return steps;
}

RotaryTable::Part RotaryTable::computed(std::int64_t first, std::int64_t count,
                                        std::int64_t length) const {
  const std::vector<double> steps = rotary_steps(width_, base_, scaling_, length);
  const auto pairs = static_cast<std::int64_t>(steps.size());
  Tensor cos = Tensor::empty({count, pairs}), sin = Tensor::empty({count, pairs});
  float *c = cos.mutable_f32(), *s = sin.mutable_f32();
  parallel_for(count, 64, [&](std::int64_t begin, std::int64_t last) {
    for (std::int64_t i = begin * pairs; i < last * pairs; ++i) {
      const double angle =
          static_cast<double>(first + i / pairs) * steps[static_cast<std::size_t>(i % pairs)];
      c[i] = static_cast<float>(scaling_.amplitude * std::cos(angle));
      s[i] = static_cast<float>(scaling_.amplitude * std::sin(angle));
    }
  });
  return {cos, sin};
}

RotaryTable::Part RotaryTable::at(std::int64_t first, std::int64_t count, DeviceKind device,
                                  std::int64_t length) const {
  const std::lock_guard lock(mutex_);
  const auto placed = [&](const Part& part) {
    return Part{part.cos.to(device), part.sin.to(device)};
  };
  const std::int64_t end = first + count;
  if (length < 0) length = end;
  if (scaling_.by_length() && static_cast<double>(length) > scaling_.original_context) {
    Long& kept = long_[static_cast<std::size_t>(device)];
    if (!kept.part.cos.defined() || kept.first > first || kept.first + kept.count < end ||
        kept.length != length)
      kept = {first, count, length, placed(computed(first, count, length))};
    return {kept.part.cos.rows(first - kept.first, end - kept.first),
            kept.part.sin.rows(first - kept.first, end - kept.first)};
  }
  Part& table = tables_[static_cast<std::size_t>(device)];
  if (!table.cos.defined() || table.cos.size(0) < end) {
    // Of doubled length, so that generation does not compute it again for every token. A position's
    // numbers do not depend on the length.
    const auto rows = static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max(end, kFewest))));
    table = placed(computed(0, rows, 0));
  }
  return {table.cos.rows(first, end), table.sin.rows(first, end)};
}

}  // namespace filigree
