// The weights of a Hugging Face model folder as one set of named tensors, from model.safetensors
// or, where that is missing, from the shards that model.safetensors.index.json lists; or in 8 bits
// (matrix_type.h) from model-i8.safetensors, which other programs do not take for weights; where
// there is none of them, from pytorch_model.bin or the shards of its index. A file of torch.save
// (.pth, .pt, .bin) or a GGUF file may stand for a folder; the latter's tensors have the names of
// the file (model/gguf_families.h knows Hugging Face's).
//
// After opening, every tensor of the index is in the shard the index names, and no name is in two
// shards. Nothing is read beyond the headers; the views keep their files mapped.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace filigree {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kEightBitWeightsFile = "model-i8.safetensors";

// How the numbers of a parameter lie, where that is not as in Hugging Face's files.
enum class StoredForm {
  kPlain,
  kTransposed,     // [out, in] of a matrix that is [in, out]
  kPairedQueries,  // of each head, the two elements that are turned together lie together
  kPairedKeys,
  kGroupedHeads,  // all queries before all keys before all values
  kPlusOne,       // gains of norms that are stored less 1
};

// The numbers of one parameter: a tensor, or integers and their scales.
struct StoredParameter {
  std::string name;
  const TensorView* values = nullptr;
  const TensorView* scales = nullptr;  // of 8-bit integers
  StoredForm form = StoredForm::kPlain;
};

class Checkpoint {
 public:
  static Checkpoint open(const std::filesystem::path& folder);

  // Sorted by name.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  // The same with the two tensors of an 8-bit matrix as one, which are checked to fit, and tensors
  // that share their numbers under the names that the files' metadata gives them besides: where
  // shared tensors are stored once, safetensors notes "left out": "stored" there.
  std::vector<StoredParameter> parameters() const;

  // nullptr when there is none.
  const TensorView* find(std::string_view name) const;

  // Throws Error listing the nearest names.
  const TensorView& at(std::string_view name) const;

  // The files that hold the tensors.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Whether the tensors have the names and forms of a GGUF file.
  bool is_gguf() const;

 private:
  explicit Checkpoint(std::filesystem::path folder);
  void open_file(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& index);
  std::vector<TensorView> read_tensors(const std::filesystem::path& file);

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> files_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> aliases_;  // name that is not stored -> one that is
};

// The weight_map of an index: tensor name to shard. Shard names are plain file names: no folders,
// no
// "..", so that an index cannot point outside its own folder.
std::map<std::string, std::string> parse_weight_map(std::string_view text,
                                                    const std::string& source);

}  // namespace filigree
