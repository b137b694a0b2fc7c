// What every command has while it runs: the options that all commands share, and the two ways out.
//
// The result goes to stdout, as text or, with --json, as exactly one JSON document. Everything else
// (progress, notes, warnings) goes to stderr and is silent with --quiet.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/progress.h"
#include "filigree/ranks.h"
#include "filigree/study.h"

namespace filigree::cli {

using Json = nlohmann::ordered_json;  // keys stay in the order they were written

// Arguments that do not go together; exit code 2. An Error of the library is exit code 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A signal asked the program to stop: Ctrl-C, or one that catch_termination() catches.
using Interrupted = study::Stopped;

struct CommonOptions {
  bool json = false;
  bool quiet = false;
  int threads = 0;  // 0: all cores
  std::uint64_t seed = 0;
  DeviceKind device = DeviceKind::kCpu;
  DType precision = DType::kF32;
  std::string adapter;  // folder of a low-rank adapter; "": none
};

class Session {
 public:
  // `ranks` are the processes that run the command together, and must outlive the session.
  Session(std::string command, CommonOptions options, std::string command_line,
          const Placement& placement, Communicator& ranks)
      : command_(std::move(command)),
        options_(options),
        command_line_(std::move(command_line)),
        placement_(placement),
        ranks_(ranks) {}

  // What a study takes from the session: bars and notes on stderr, an end on Ctrl-C once
  // catch_interrupts() was called. The session must outlive it.
  study::Context context() const;
  const Placement& placement() const { return placement_; }

  Communicator& ranks() const { return ranks_; }
  // Whether this process writes what the command writes. The others' prints and notes are silent.
  bool writes() const { return ranks_.first(); }

  // As it could be typed again: "filigree eval 'my model' --data shards".
  const std::string& command_line() const { return command_line_; }

  const CommonOptions& options() const { return options_; }
  bool json() const { return options_.json; }

  // Results, with control characters of names and tokens escaped. Throws Error when they cannot be
  // written (nobody reads any more, the disk is full, standard output is closed), or when a file
  // that they were computed from was written to in the meantime.
  void print(std::string_view text) const;
  // Text that is the result, byte by byte; escaped only where a terminal would get it.
  void print_exactly(std::string_view text) const;

  // Puts the version, the command, seed and threads in front, so that a result can be traced.
  void print_json(const Json& result) const;

  // A line on stderr, unless --quiet.
  void note(std::string_view line) const;

  // What the program ends with when the command returns: 0 unless set.
  void set_exit_code(int code) { exit_code_ = code; }
  int exit_code() const { return exit_code_; }

  // For a Progress on stderr.
  ProgressOptions progress(std::string label, std::string unit, std::int64_t total) const;

 private:
  std::string command_;
  CommonOptions options_;
  std::string command_line_;
  Placement placement_;
  Communicator& ranks_;
  int exit_code_ = 0;
};

// Writes all of `text` to stdout, past any buffer, so that streamed text shows at once.
void write_stdout(std::string_view text);

// From the call on, SIGTERM, SIGHUP, SIGXCPU and SIGUSR1 end the process as they do by themselves,
// but remove the files that are half written first.
void leave_nothing_half_written();
// From the call on, the first Ctrl-C only sets a flag, which long work looks at between its steps;
// the second one ends the process.
void catch_interrupts();
// The same for SIGTERM, SIGHUP, SIGXCPU and SIGUSR1 (which batch systems send before a job's time
// is over), for work that saves itself before it stops.
void catch_termination();
bool interrupted();
// 128 + the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP.
int interrupted_exit_code();
void throw_if_interrupted();

}  // namespace filigree::cli
