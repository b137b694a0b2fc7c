#include <algorithm>
#include <bit>
#include <cmath>

#include "filigree/layers.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::int64_t kFewest = 256;  // positions of the first table

double scaled(double step, const RotaryScaling& scaling) {
  const double slow = step / scaling.factor;
  switch (scaling.kind) {
    case RotaryScaling::Kind::kNone: return step;
    case RotaryScaling::Kind::kLinear: return slow;
    case RotaryScaling::Kind::kLlama3: break;
  }
  const double turns = scaling.original_context * step / (2.0 * M_PI);
  const double share =
      (turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
  return std::lerp(slow, step, std::clamp(share, 0.0, 1.0));
}

}  // namespace

std::vector<double> rotary_steps(std::int64_t width, double base, const RotaryScaling& scaling) {
  std::vector<double> steps;
  for (std::int64_t i = 0; 2 * i < width; ++i)
    steps.push_back(scaled(
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)), scaling));
  return steps;
}

RotaryTable::Part RotaryTable::at(std::int64_t first, std::int64_t count, DeviceKind device) const {
  const std::lock_guard lock(mutex_);
  Part& table = tables_[static_cast<std::size_t>(device)];
  const std::int64_t end = first + count;
  if (!table.cos.defined() || table.cos.size(0) < end) {
    // Of doubled length, so that generation does not compute it again for every token. A position's
    // numbers do not depend on the length.
    const auto rows = static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max(end, kFewest))));
    const auto pairs = static_cast<std::int64_t>(steps_.size());
    Tensor cos = Tensor::empty({rows, pairs}), sin = Tensor::empty({rows, pairs});
    float *c = cos.mutable_f32(), *s = sin.mutable_f32();
    parallel_for(rows, 64, [&](std::int64_t begin, std::int64_t last) {
      for (std::int64_t i = begin * pairs; i < last * pairs; ++i) {
        const double angle =
            static_cast<double>(i / pairs) * steps_[static_cast<std::size_t>(i % pairs)];
        c[i] = static_cast<float>(std::cos(angle));
        s[i] = static_cast<float>(std::sin(angle));
      }
    });
    table = {cos.to(device), sin.to(device)};
  }
  return {table.cos.rows(first, end), table.sin.rows(first, end)};
}

}  // namespace filigree
