#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

// `value` with `decimals` behind the point.
std::string fixed(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool zero = digits.find_first_not_of("0.") == std::string::npos;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  if (point > 4) {  // "1500" stays, "15,000" needs the comma
    for (std::size_t at = point - 3; at > 0 && at < digits.size();
         at -= std::min<std::size_t>(at, 3))
      digits.insert(at, ",");
  }
  return (value < 0 && !zero ? "\u2212" : "") + digits;
}

std::string unit(NumberFormat format) { return format == NumberFormat::kPercent ? " %" : ""; }
double factor(NumberFormat format) { return format == NumberFormat::kPercent ? 100 : 1; }

std::string superscript(int number) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) out += kDigits[digit - '0'];
  return out;
}

// 1, 2, 2.5 or 5 times a power of ten: the smallest such step that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 2.5, 5.0})
    if (step * power >= least * (1 - 1e-9)) return step * power;
  return 10 * power;
}

int decimals_of(double step) {
  for (int decimals = 0; decimals < 15; ++decimals) {
    const double scaled = step * std::pow(10, decimals);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return decimals;
  }
  return 15;
}

}  // namespace

std::string format_number(double value, int digits, NumberFormat format) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double shown = value * factor(format);
  if (shown == 0) return "0" + unit(format);
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(shown))));
  if (magnitude < -4 || magnitude > 9) {
    const double mantissa = shown / std::pow(10, magnitude);
    return fmt::format("{} × 10{}{}", fixed(mantissa, digits - 1), superscript(magnitude),
                       unit(format));
  }
  return fixed(shown, std::max(0, digits - 1 - magnitude)) + unit(format);
}

Axis::Axis(const AxisSpec& spec, std::span<const double> data, int most_ticks)
    : scale_(spec.scale) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  if (spec.low < spec.high) {
    low = spec.low;
    high = spec.high;
  } else {
    const auto take = [&](double value) {
      if (!std::isfinite(value)) return;
      low = std::min(low, value);
      high = std::max(high, value);
    };
    for (const double value : data) take(value);
    for (const double value : spec.include) take(value);
    if (low > high) low = high = scale_ == AxisScale::kLog ? 1 : 0;
  }
  if (scale_ == AxisScale::kLog) {
    require(low > 0, "axis '{}': {} cannot stand on a logarithmic axis, only values above 0",
            printable(spec.label), low);
    make_log(spec, low, high, std::max(2, most_ticks));
  } else {
    make_linear(spec, low, high, std::max(2, most_ticks));
  }
}

void Axis::make_linear(const AxisSpec& spec, double low, double high, int most_ticks) {
  if (low == high) {  // one value: room around it
    const double room = low == 0 ? 1 : std::abs(low) * 0.5;
    low -= low == 0 ? 0 : room;
    high += room;
  }
  const double times = factor(spec.format);
  double step = round_step((high - low) * times / most_ticks);
  if (spec.whole && decimals_of(step) > 0) step = step < 1 ? 1 : 2 * step;  // 2.5 alone is not
  if (spec.ends_on_ticks) {
    low = std::floor(low * times / step + 1e-9) * step / times;
    high = std::ceil(high * times / step - 1e-9) * step / times;
  } else if (!(spec.low < spec.high)) {
    const double air = 0.05 * (high - low);
    low -= air;
    high += air;
  }
  low_ = low;
  high_ = high;
  const double first = std::ceil(low * times / step - 1e-9);
  const double last = std::floor(high * times / step + 1e-9);
  const int decimals = decimals_of(step);
  const double largest = std::max(std::abs(first * step), std::abs(last * step));
  for (double at = first; at <= last; ++at) {
    const double value = at * step;
    const std::string label = largest >= 1e7 || step < 1e-5
                                  ? format_number(value / times, 3, spec.format)
                                  : fixed(value, decimals) + unit(spec.format);
    ticks_.push_back({value / times, label});
  }
}

void Axis::make_log(const AxisSpec& spec, double low, double high, int most_ticks) {
  const bool fixed_ends = spec.low < spec.high;
  const double room = low == high ? 2 : 1;
  low_ = low / room;
  high_ = high * room;
  if (!fixed_ends) {  // a little air, so that points are not cut by the frame
    const double air = std::pow(high_ / low_, 0.04);
    low_ /= air;
    high_ *= air;
  }
  const double times = factor(spec.format);
  const int first = static_cast<int>(std::floor(std::log10(low_ * times)));
  const int last = static_cast<int>(std::ceil(std::log10(high_ * times)));
  const auto visible = [this, times](double shown) {
    return shown >= low_ * times * (1 - 1e-9) && shown <= high_ * times * (1 + 1e-9);
  };
  // Powers of ten, thinned out where there are too many; 1, 2, 5 where there are hardly any.
  int whole = 0;
  for (int power = first; power <= last; ++power) whole += visible(std::pow(10, power));
  const bool with_parts = whole < 3 && 3 * whole <= most_ticks + 3;
  const int every = std::max(1, (whole + most_ticks - 1) / most_ticks);
  for (int power = first; power <= last; ++power) {
    for (int part = 1; part <= 9; ++part) {
      const double shown = part * std::pow(10, power);
      if (!visible(shown) || shown < 0.99 * kZeroGap * spec.zero_at * times) continue;
      const bool labelled = part == 1 ? power % every == 0 : with_parts && (part == 2 || part == 5);
      if (!labelled) {
        minor_ticks_.push_back(shown / times);
        continue;
      }
      std::string label;
      if (power < -3 || power > 4)
        label = (part == 1 ? "" : fmt::format("{}·", part)) + "10" + superscript(power);
      else
        label = fixed(shown, std::max(0, -power));
      ticks_.push_back({shown / times, label + unit(spec.format)});
    }
  }
  if (spec.zero_at > 0) ticks_.insert(ticks_.begin(), {spec.zero_at, "0" + unit(spec.format)});
}

double Axis::position(double value) const {
  if (scale_ == AxisScale::kLog) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

}  // namespace filigree::figure
