// Axes: from data to the page, and where the ticks are.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace filigree::figure {

enum class AxisScale { kLinear, kLog };

// How many times the place of 0 on a log axis the least other value is.
inline constexpr double kZeroGap = 2.5;
enum class NumberFormat { kPlain, kPercent };  // percent: 0.25 is "25 %"

struct AxisSpec {
  std::string label = {};
  AxisScale scale = AxisScale::kLinear;
  NumberFormat format = NumberFormat::kPlain;
  // Fixed ends; where low is not below high, the data decide, and `include` is kept in view.
  double low = 0, high = 0;
  std::vector<double> include = {};
  // Of a log axis: where 0 stands, everything else being kZeroGap times as far or more; 0: nowhere.
  double zero_at = 0;
  bool ends_on_ticks =
      false;           // as axes of bars do; otherwise there is a little air around the data
  bool whole = false;  // ticks of a linear axis at whole numbers only, as of layers
};

struct Tick {
  double value;
  std::string label;
};

// An axis that knows its ends.
class Axis {
 public:
  // Ends that hold all `data`. `most_ticks` is how many labels there is room for. On a log axis
  // every value must be above 0 (Error otherwise).
  Axis(const AxisSpec& spec, std::span<const double> data, int most_ticks);

  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  // Positions of unlabelled ticks between those of a log axis.
  const std::vector<double>& minor_ticks() const { return minor_ticks_; }

  // 0 at the low end, 1 at the high end; beyond them for values outside.
  double position(double value) const;

 private:
  void make_linear(const AxisSpec& spec, double low, double high, int most_ticks);
  void make_log(const AxisSpec& spec, double low, double high, int most_ticks);

  AxisScale scale_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
  std::vector<double> minor_ticks_;
};

// As few digits as show `value` to `digits` significant ones, with a true minus sign: "−0.25",
// "1,500", "2.5 %".
std::string format_number(double value, int digits = 3, NumberFormat format = NumberFormat::kPlain);

}  // namespace filigree::figure
