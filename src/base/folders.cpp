#include "base/folders.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/output_folder.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

void flush_folder(const std::filesystem::path& folder) { OpenFolder(folder).flush(); }

void make_folders(const std::filesystem::path& folder) {
  folder_to_write(folder, MissingFolders::kMake);
}

bool remove_file(const std::filesystem::path& file) {
  if (::unlink(file.c_str()) == 0) return true;
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR) return false;
  fail("cannot remove '{}': {}", printable(file.string(), 400),
       std::generic_category().message(code));
}

}  // namespace filigree
