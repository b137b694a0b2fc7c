// The files of the page, embedded in the program: a fixed table, so that no path of a request ever
// reaches the file system.
#pragma once

#include <string_view>

namespace filigree::serve {

struct Asset {
  std::string_view path, type;
  std::string_view (*text)();
};

// Null for every other path.
const Asset* find_asset(std::string_view path);

}  // namespace filigree::serve
