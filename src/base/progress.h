// Progress of long work: a bar that is redrawn on a terminal, a plain line now and then elsewhere
// (log files, CI), nothing when the user asked for quiet. It shows the share done, the rate, the
// time left and one metric of the caller:
//
//   train  [=========>           ]  42%  420/1000 steps  12.3 steps/s  0:47 left  loss 3.214
//
// Not thread-safe: one thread reports.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace filigree {

enum class ProgressStyle { kBar, kLines, kSilent };

// kSilent if `quiet`, kBar if the descriptor is a terminal that can redraw a line, else kLines.
ProgressStyle progress_style(int descriptor, bool quiet);

// Width of the terminal in characters; 80 when the descriptor is none.
int terminal_columns(int descriptor);

struct ProgressOptions {
  std::string label;              // "train"
  std::string unit = "steps";     // what is counted, in the plural
  std::int64_t total = 0;         // 0: unknown; then neither bar, share nor time left is shown
  std::int64_t already_done = 0;  // where resumed work starts; does not count into the rate
  ProgressStyle style = ProgressStyle::kSilent;
  int columns = 80;                      // a bar's line is cut to this width
  double seconds_between_redraws = 0.1;  // of the bar
  double seconds_between_lines = 10.0;
  std::function<double()> clock;  // seconds since any fixed time; default: the steady clock
};

class Progress {
 public:
  // `out` must outlive the object.
  Progress(std::ostream& out, ProgressOptions options);

  // Ends the bar's line, so that whatever is printed next (an error, say) starts on its own.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Reports that `done` of the total units are done, and a metric such as "loss 3.214". Cheap when
  // nothing is due, so call it for every unit.
  void update(std::int64_t done, std::string_view metric = {});

  // Shows the last state with the time taken. Later calls do nothing.
  void finish();

 private:
  std::string text(double now) const;
  void draw_bar(const std::string& text);

  std::ostream& out_;
  ProgressOptions options_;
  double start_;
  double last_shown_;
  std::int64_t done_;
  std::string metric_;
  bool bar_open_ = false;
  bool finished_ = false;
};

}  // namespace filigree
