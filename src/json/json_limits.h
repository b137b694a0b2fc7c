// What JSON text from outside may be: one set of limits for every file that is read. They are far
// beyond real files (a tokenizer.json of 256,000 tokens has 33 MB and 2 million values) and keep
// what hostile text can make a reader allocate within a few hundred megabytes: a document takes at
// most about 100 bytes a value beside its strings.
#pragma once

#include <cstddef>

namespace filigree {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{128} << 20;
  std::size_t max_depth = 64;                            // of nested arrays and objects
  std::size_t max_values = 4000000;                      // values in all, keys not counted
  std::size_t max_string_bytes = std::size_t{16} << 20;  // of one key or string
};

}  // namespace filigree
