#include "apps/cli/program/session.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

#include "base/mapped_file.h"
#include "base/partial_names.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "filigree/version.h"

namespace filigree::cli {
namespace {

volatile std::sig_atomic_t signal_seen = 0;

// Asked to end by its launcher, terminal, or limit of time.
constexpr int kEndingSignals[] = {SIGTERM, SIGHUP, SIGXCPU, SIGUSR1};

// Under nohup SIGHUP stays ignored. Not restarted: a read that waits for the keyboard must return.
void set_handler(int number, void (*handler)(int)) {
  struct sigaction now = {};
  if (number == SIGHUP && ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
    return;
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(number, &action, nullptr);
}

// Only what a signal handler may call.
void end_at_once(int number) {
  remove_partial_files();
  std::signal(number, SIG_DFL);
  ::raise(number);
}

// The second one ends the process, but for SIGXCPU, which comes every second from the first on.
void note_signal(int number) {
  signal_seen = number;
  struct sigaction action = {};
  action.sa_handler = number == SIGXCPU ? SIG_IGN : end_at_once;
  ::sigaction(number, &action, nullptr);
}

// A study's progress on stderr.
class Bar final : public study::WorkReport {
 public:
  explicit Bar(ProgressOptions options) : progress_(std::cerr, std::move(options)) {}
  void update(std::int64_t done, std::string_view metric) override {
    progress_.update(done, terminal_text(metric));
  }
  void finish() override { progress_.finish(); }

 private:
  Progress progress_;
};

}  // namespace

void write_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EINTR) {
      throw_if_interrupted();
    } else {
      fail("cannot write to standard output: {}", std::strerror(errno));
    }
  }
}

void Session::print(std::string_view text) const {
  if (!writes()) return;
  require_unchanged_files();
  write_stdout(terminal_text(text));
}

void Session::print_exactly(std::string_view text) const {
  if (writes())
    write_stdout(::isatty(STDOUT_FILENO) == 1 ? terminal_text(text) : std::string(text));
}

void Session::print_json(const Json& result) const {
  if (!writes()) return;
  require_unchanged_files();
  Json document = {{"filigree", version_string()},
                   {"command", command_},
                   {"seed", options_.seed},
                   {"threads", num_threads()}};
  for (const auto& [key, value] : result.items()) document[key] = value;
  // File names and the like may be any bytes; JSON must be UTF-8.
  write_stdout(terminal_json(document.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n");
}

void Session::note(std::string_view line) const {
  if (!options_.quiet && writes()) std::cerr << terminal_text(line) << '\n' << std::flush;
}

ProgressOptions Session::progress(std::string label, std::string unit, std::int64_t total) const {
  ProgressOptions options;
  options.label = terminal_text(label);
  options.unit = std::move(unit);
  options.total = total;
  options.style = progress_style(STDERR_FILENO, options_.quiet || !writes());
  options.columns = terminal_columns(STDERR_FILENO);
  return options;
}

study::Context Session::context() const {
  study::Context context;
  context.seed = options_.seed;
  context.placement = placement_;
  context.ranks = &ranks_;
  context.adapter = options_.adapter;
  context.watch = [this](const study::Work& work) -> std::unique_ptr<study::WorkReport> {
    ProgressOptions options = progress(work.label, work.unit, work.total);
    options.already_done = work.already_done;
    return std::make_unique<Bar>(std::move(options));
  };
  context.stop = [] { return interrupted(); };
  context.note = [this](const std::string& sentence) { note(sentence); };
  return context;
}

void leave_nothing_half_written() {
  for (const int number : kEndingSignals) set_handler(number, end_at_once);
}

void catch_interrupts() { set_handler(SIGINT, note_signal); }

void catch_termination() {
  for (const int number : kEndingSignals) set_handler(number, note_signal);
}

bool interrupted() { return signal_seen != 0; }

int interrupted_exit_code() { return 128 + signal_seen; }

void throw_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace filigree::cli
