// A run of the program with something going wrong, and what is left of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace filigree::faults {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

struct Ended {
  int code = 0;    // exit code; -1 where a signal ended it
  int signal = 0;  // 0: none
  bool timed_out = false;
  std::string said;  // the end of its standard error

  // 3: done, with a finding, such as a dense model of two steps that had not converged.
  bool did_its_work() const { return code == 0 || code == 3; }
};

// The bytes of every file below a folder, by path.
using Tree = std::map<std::string, std::string>;
Tree read_tree(const fs::path& folder);
void write_tree(const fs::path& folder, const Tree& tree);

// Every entry below a folder, folders with a slash at their end, links with what they lead to.
std::set<std::string> read_names(const fs::path& folder);

struct Start {
  Arguments arguments;
  std::map<std::string, std::string> environment = {};  // with it the shim is loaded
  std::chrono::milliseconds kill_after = {};            // 0: not killed
};

// Where the program and the shim are, and scratch space. A program that counts its allocations by
// itself needs no shim.
struct Place {
  fs::path program, shim, scratch;

  Ended run(const Start& start) const { return end(begin(start)); }
  // A run that goes on beside others, until its end is waited for.
  struct Running {
    pid_t process = 0;
    fs::path said;
    std::chrono::steady_clock::time_point begun;
    std::chrono::milliseconds kill_after;
  };
  Running begin(const Start& start) const;
  Ended end(const Running& running) const;
  // Counts the operations of a whole run.
  long operations(const Arguments& arguments, const fs::path& under, const std::string& kind,
                  Ended* ended = nullptr) const;
};

}  // namespace filigree::faults
