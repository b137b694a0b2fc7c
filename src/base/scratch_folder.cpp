#include "base/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "filigree/error.h"

namespace filigree {

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
  std::error_code ignored;
  const std::filesystem::path where =
      parent.empty() ? std::filesystem::temp_directory_path(ignored) : parent;
  std::string name = ((where.empty() ? "." : where) / "filigree-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    fail("cannot make a temporary folder in '{}': {}", where.string(), std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace filigree
