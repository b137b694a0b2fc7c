// A run of the program with something going wrong, and what is left of it.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
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
};

struct Start {
  Arguments arguments;
  std::map<std::string, std::string> environment = {};  // with it the shim is loaded
  std::chrono::milliseconds kill_after = {};            // 0: not killed
};

// Where the program and the shim are, and scratch space. A program that counts its allocations by
// itself needs no shim.
struct Place {
  fs::path program, shim, scratch;

  Ended run(const Start& start) const;
  // Counts the operations of a whole run.
  long operations(const Arguments& arguments, const fs::path& under, const std::string& kind,
                  Ended* ended = nullptr) const;
};

// The bytes of every file below a folder, by path.
using Tree = std::map<std::string, std::string>;
Tree read_tree(const fs::path& folder);
void write_tree(const fs::path& folder, const Tree& tree);

}  // namespace filigree::faults
