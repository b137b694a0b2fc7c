#include "base/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace filigree {
namespace {

constexpr int kDefaultColumns = 80;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// "0:47", "12:03", "3:07:59".
std::string format_duration(double seconds) {
  constexpr double kLongestShown = 1000.0 * 3600.0;
  if (!(seconds < kLongestShown)) return "more than 1000 h";
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

// Three significant digits, without an exponent for what one meets in practice.
std::string format_rate(double rate) {
  if (rate >= 100.0) return fmt::format("{:.0f}", rate);
  if (rate >= 10.0) return fmt::format("{:.1f}", rate);
  if (rate >= 1.0) return fmt::format("{:.2f}", rate);
  return fmt::format("{:.3f}", rate);
}

std::string format_bar(double share, int width) {
  const int filled = static_cast<int>(share * width);
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled < width) bar += '>';
  bar.resize(static_cast<std::size_t>(width), ' ');
  return "[" + bar + "]";
}

}  // namespace

ProgressStyle progress_style(int descriptor, bool quiet) {
  if (quiet) return ProgressStyle::kSilent;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(descriptor) == 1 && !dumb ? ProgressStyle::kBar : ProgressStyle::kLines;
}

int terminal_columns(int descriptor) {
  winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

Progress::Progress(std::ostream& out, ProgressOptions options)
    : out_(out), options_(std::move(options)), done_(options_.already_done) {
  if (!options_.clock) options_.clock = steady_seconds;
  start_ = options_.clock();
  last_shown_ = start_;
}

Progress::~Progress() {
  if (bar_open_) out_ << '\n' << std::flush;
}

void Progress::update(std::int64_t done, std::string_view metric) {
  if (options_.style == ProgressStyle::kSilent || finished_) return;
  done_ = done;
  metric_ = metric;
  const double now = options_.clock();
  const bool bar = options_.style == ProgressStyle::kBar;
  const double pause = bar ? options_.seconds_between_redraws : options_.seconds_between_lines;
  // The first bar shows at once: it says that the work has begun.
  if (now - last_shown_ < pause && !(bar && !bar_open_)) return;
  last_shown_ = now;
  if (bar)
    draw_bar(text(now));
  else
    out_ << text(now) << '\n' << std::flush;
}

void Progress::finish() {
  if (options_.style == ProgressStyle::kSilent || finished_) return;
  finished_ = true;
  const std::string last = text(options_.clock());
  if (options_.style == ProgressStyle::kBar)
    draw_bar(last);
  else
    out_ << last;
  out_ << '\n' << std::flush;
  bar_open_ = false;
}

std::string Progress::text(double now) const {
  const double elapsed = now - start_;
  const auto worked = static_cast<double>(done_ - options_.already_done);
  const double rate = elapsed > 0.0 ? worked / elapsed : 0.0;
  std::string line;
  const auto add = [&line](std::string_view part) {
    if (!line.empty()) line += "  ";
    line += part;
  };
  double share = -1.0;  // unknown
  if (options_.total > 0) {
    share = std::clamp(static_cast<double>(done_) / static_cast<double>(options_.total), 0.0, 1.0);
    add(fmt::format("{:3}%", static_cast<int>(share * 100.0)));
    add(fmt::format("{}/{} {}", done_, options_.total, options_.unit));
  } else {
    add(fmt::format("{} {}", done_, options_.unit));
  }
  if (rate > 0.0) add(fmt::format("{} {}/s", format_rate(rate), options_.unit));
  if (finished_)
    add("in " + format_duration(elapsed));
  else if (options_.total > done_ && rate > 0.0)
    add(format_duration(static_cast<double>(options_.total - done_) / rate) + " left");
  if (!metric_.empty()) add(metric_);
  // The numbers matter more than the bar, which takes what room they leave.
  std::string front = options_.label;
  if (share >= 0.0 && options_.style == ProgressStyle::kBar) {
    const auto others = static_cast<int>(front.size() + line.size()) + 7;  // brackets and gaps
    const int width = std::min(24, options_.columns - others);
    if (width >= 4) front += (front.empty() ? "" : "  ") + format_bar(share, width);
  }
  return front.empty() ? line : front + "  " + line;
}

void Progress::draw_bar(const std::string& text) {
  // The last column stays free: writing into it makes some terminals wrap.
  const auto limit = static_cast<std::size_t>(std::max(options_.columns - 1, 0));
  // "\x1b[K" clears what a longer line left behind.
  out_ << '\r' << std::string_view(text).substr(0, limit) << "\x1b[K" << std::flush;
  bar_open_ = true;
}

}  // namespace filigree
