// A folder of the server's own for files that are written to be sent, gone with the object.
#pragma once

#include <filesystem>
#include <string>

namespace filigree::serve {

class ScratchFolder {
 public:
  // In the system's folder for such things. Throws Error when there is no room for one.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The bytes of a file that the server has written.
std::string bytes_of(const std::filesystem::path& file);

}  // namespace filigree::serve
