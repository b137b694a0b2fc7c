#include "filigree/train/run_log.h"

#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"

namespace filigree {

RunLog::RunLog(const std::filesystem::path& path) : path_(path), out_(path, std::ios::app) {
  require(out_.good(), "cannot write the log '{}'", path.string());
}

RunLog RunLog::start(const std::filesystem::path& path, const nlohmann::json& header) {
  write_file_atomically(path, header.dump() + "\n");
  return RunLog(path);
}

RunLog RunLog::resume(const std::filesystem::path& path, std::int64_t resume_step,
                      const nlohmann::json& header) {
  std::ifstream in(path);
  std::string kept, line;
  while (std::getline(in, line)) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;  // a line that was being written when the run was killed
    if (json.contains("step") && json["step"].is_number_integer() &&
        json["step"].get<std::int64_t>() > resume_step)
      continue;
    kept += line + "\n";
  }
  if (kept.empty()) kept = header.dump() + "\n";
  write_file_atomically(path, kept);
  return RunLog(path);
}

void RunLog::write(const nlohmann::json& line) {
  out_ << line.dump() << "\n" << std::flush;
  require(out_.good(), "cannot write the log '{}': is the disk full?", path_.string());
}

}  // namespace filigree
