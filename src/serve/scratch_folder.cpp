#include "filigree/serve/scratch_folder.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "filigree/base/error.h"

namespace filigree::serve {

ScratchFolder::ScratchFolder() {
  std::error_code failed;
  std::string name = (std::filesystem::temp_directory_path(failed) / "filigree-XXXXXX").string();
  require(!failed && ::mkdtemp(name.data()) != nullptr,
          "the server cannot make a folder for what is to be sent; set TMPDIR to one it may use");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  require(in.good() || in.eof(), "the server cannot read what it has written");
  return bytes;
}

}  // namespace filigree::serve
