// A folder of its own that is removed with everything in it, also when an exception passes.
#pragma once

#include <filesystem>

namespace filigree {

class ScratchFolder {
 public:
  // Below `parent`, or where the system keeps temporary files when that is empty. Throws Error when
  // it cannot be made.
  explicit ScratchFolder(const std::filesystem::path& parent = {});
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace filigree
