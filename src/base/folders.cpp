#include "filigree/base/folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace fs = std::filesystem;

void flush_folder(const fs::path& folder) {
  const fs::path named = folder.empty() ? fs::path(".") : folder;
  const int descriptor = ::open(named.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder may be writable and not readable; then there is nothing to flush it by.
  if (descriptor < 0 && errno == EACCES) return;
  int code = descriptor < 0 ? errno : 0;
  if (descriptor >= 0) {
    if (::fsync(descriptor) != 0) code = errno;
    ::close(descriptor);
  }
  if (code == 0 || code == EINVAL || code == ENOTSUP || code == ENOSYS) return;
  fail("cannot flush the folder '{}' to the disk: {}", printable(named.string(), 400),
       std::generic_category().message(code));
}

void make_folders(const fs::path& folder) {
  std::error_code failure;
  if (fs::is_directory(folder, failure)) return;
  // "a/b/" has an empty last part, and "a" an empty parent.
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();
  const fs::path parent = named.parent_path();
  if (!parent.empty() && parent != named) make_folders(parent);
  failure.clear();
  if (fs::create_directory(named, failure)) return flush_folder(parent);
  std::error_code ignored;
  if (fs::is_directory(named, ignored)) return;  // another process was first
  fail("cannot create the folder '{}': {}", printable(named.string(), 400),
       fs::exists(named, ignored) ? "a file of that name exists" : failure.message());
}

}  // namespace filigree
