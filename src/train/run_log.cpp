#include "train/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/file_status.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "json/lines.h"

namespace filigree {
namespace {

// Every line is an object, also that of a run that has nothing to say about itself.
std::string first_line(const nlohmann::json& header) {
  return (header.is_null() ? "{}" : header.dump()) + "\n";
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)) {
  const int code = errno;
  require(descriptor_ >= 0, "cannot write the log '{}': {}", printable(path.string(), 400),
          std::generic_category().message(code));
}

RunLog::RunLog(RunLog&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLog& RunLog::operator=(RunLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunLog::~RunLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RunLog RunLog::start(const std::filesystem::path& path, const nlohmann::json& header) {
  write_file_atomically(path, first_line(header));
  return RunLog(path);
}

RunLog RunLog::resume(const std::filesystem::path& path, std::int64_t resume_step,
                      const nlohmann::json& header) {
  std::string kept;
  if (is_there(path))
    for (JsonLines lines = JsonLines::open(path, LastLine::kMayBeCut); lines.next();)
      if (lines.object().integer_or("step", 0) <= resume_step)
        kept += std::string(lines.text()) + "\n";
  if (kept.empty()) kept = first_line(header);
  write_file_atomically(path, kept);
  return RunLog(path);
}

void RunLog::write(const nlohmann::json& line) {
  const std::string text = line.dump() + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    const int code = errno;
    if (written < 0 && code == EINTR) continue;
    require(written >= 0, "cannot write the log '{}': {}", printable(path_.string(), 400),
            std::generic_category().message(code));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void RunLog::flush() {
  const int code = ::fsync(descriptor_) == 0 ? 0 : errno;
  require(code == 0, "cannot flush the log '{}' to the disk: {}", printable(path_.string(), 400),
          std::generic_category().message(code));
}

}  // namespace filigree
