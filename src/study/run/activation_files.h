// Files of activations: tables whose rows are the positions of prompts, one below the other.
//
// Of one file (.npz, .safetensors) the tables are kept in temporary files until the last row is
// there; a folder gets a file (.safetensors) whenever the rows reach its size. Either way memory
// holds the rows of a few prompts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "filigree/study.h"
#include "filigree/tensor.h"

namespace filigree::study {

// The rows of some prompts in one table; the first extent is the row's.
struct ActivationTable {
  std::string name;
  Tensor rows;  // f32 or i32
};

class ActivationFiles {
 public:
  virtual ~ActivationFiles() = default;
  // The same tables each time, in the same order.
  virtual void append(const std::vector<ActivationTable>& tables, std::int64_t prompts) = 0;
  // Puts everything in its place, with what is to be known of it. Returns the bytes written.
  virtual std::uint64_t finish(const Json& about) = 0;

  // Throws RequestError for a file of another kind; a name without an ending is a folder's.
  static std::unique_ptr<ActivationFiles> create(const std::filesystem::path& out,
                                                 std::int64_t shard_bytes);
};

}  // namespace filigree::study
