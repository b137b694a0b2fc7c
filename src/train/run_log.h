// The log of a run: one JSON object a line. The first line is the header (what was run, with which
// settings, seed and version); the others are {"step": ..., metrics...} and events.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>

namespace filigree {

class RunLog {
 public:
  // Starts a new log, or continues one: lines of steps beyond `resume_step` are dropped (they will
  // be computed again) and a half line at the end too.
  static RunLog start(const std::filesystem::path& path, const nlohmann::json& header);
  static RunLog resume(const std::filesystem::path& path, std::int64_t resume_step,
                       const nlohmann::json& header);

  RunLog(RunLog&& other) noexcept;
  RunLog& operator=(RunLog&& other) noexcept;
  ~RunLog();

  // Appends a line, which others can read at once. Throws Error when the disk is full.
  void write(const nlohmann::json& line);
  // Waits until what was written is on the disk. Throws Error when it cannot be.
  void flush();

 private:
  explicit RunLog(const std::filesystem::path& path);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace filigree
