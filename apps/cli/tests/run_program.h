// Runs the built program as a user does and collects what it prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace filigree::cli {

struct ProgramRun {
  int code = -1;  // exit code, or 128 + the signal that ended it
  std::string out;
  std::string err;
};

// Runs `filigree` with these arguments and this standard input.
ProgramRun run_program(const std::vector<std::string>& arguments, const std::string& input = "");

// Runs a command line of /bin/sh, in which $FILIGREE is the program.
ProgramRun run_shell(const std::string& command_line);

// Starts the program, sends SIGINT once it has printed something, and waits for its end.
ProgramRun run_and_interrupt(const std::vector<std::string>& arguments);

// Starts the program and sends it `signal` as soon as `ready` says so; waits for its end.
ProgramRun run_and_signal(const std::vector<std::string>& arguments, int signal,
                          const std::function<bool()>& ready);

}  // namespace filigree::cli
