#include "filigree/train/run_log.h"

#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/json/lines.h"

namespace filigree {
namespace {

// Every line is an object, also that of a run that has nothing to say about itself.
std::string first_line(const nlohmann::json& header) {
  return (header.is_null() ? "{}" : header.dump()) + "\n";
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& path) : path_(path), out_(path, std::ios::app) {
  require(out_.good(), "cannot write the log '{}'", path.string());
}

RunLog RunLog::start(const std::filesystem::path& path, const nlohmann::json& header) {
  write_file_atomically(path, first_line(header));
  return RunLog(path);
}

RunLog RunLog::resume(const std::filesystem::path& path, std::int64_t resume_step,
                      const nlohmann::json& header) {
  std::string kept;
  if (std::filesystem::exists(path))
    for (JsonLines lines = JsonLines::open(path, LastLine::kMayBeCut); lines.next();)
      if (lines.object().integer_or("step", 0) <= resume_step)
        kept += std::string(lines.text()) + "\n";
  if (kept.empty()) kept = first_line(header);
  write_file_atomically(path, kept);
  return RunLog(path);
}

void RunLog::write(const nlohmann::json& line) {
  out_ << line.dump() << "\n" << std::flush;
  require(out_.good(), "cannot write the log '{}': is the disk full?", path_.string());
}

}  // namespace filigree
