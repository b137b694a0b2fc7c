#include "io/checkpoint.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include "base/file_status.h"
#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf.h"
#include "io/matrix_type.h"
#include "io/torch_file.h"
#include "json/object.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kTorchFile = "pytorch_model.bin",
                           kTorchIndex = "pytorch_model.bin.index.json";

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

std::map<std::string, std::string> parse_weight_map(std::string_view text,
                                                    const std::string& source) {
  const JsonObject weight_map = JsonObject::parse(text, source).object("weight_map");
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : weight_map.raw().items()) {
    if (!shard.is_string())
      fail("checkpoint: '{}': tensor '{}' is mapped to {}, should be a file name", source,
           printable(tensor), shard.type_name());
    const auto& name = shard.get_ref<const std::string&>();
    if (!is_plain_file_name(name))
      fail(
          "checkpoint: '{}': tensor '{}' is mapped to '{}', should be a plain file name, without "
          "folders",
          source, printable(tensor), printable(name));
    shards.emplace(tensor, name);
  }
  if (shards.empty()) fail("checkpoint: '{}': weight_map is empty", source);
  return shards;
}

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)) {}

Checkpoint Checkpoint::open(const fs::path& folder) {
  Checkpoint checkpoint(folder);
  if ((has_torch_ending(folder) || has_gguf_ending(folder)) && is_file(folder)) {
    checkpoint.open_file(folder);
    return checkpoint;
  }
  if (!is_folder(folder))
    fail("checkpoint: '{}' is not a folder; give the one that holds config.json and {}",
         folder.string(), kWeightsFile);
  if (is_there(folder / kWeightsFile))
    checkpoint.open_file(folder / kWeightsFile);
  else if (is_there(folder / kIndexFile))
    checkpoint.open_shards(folder / kIndexFile);
  else if (is_there(folder / kEightBitWeightsFile))
    checkpoint.open_file(folder / kEightBitWeightsFile);
  else if (is_there(folder / kTorchFile))
    checkpoint.open_file(folder / kTorchFile);
  else if (is_there(folder / kTorchIndex))
    checkpoint.open_shards(folder / kTorchIndex);
  else
    fail("checkpoint: '{}' has neither {} nor {}, and not {} or its index either", folder.string(),
         kWeightsFile, kIndexFile, kTorchFile);
  return checkpoint;
}

std::vector<TensorView> Checkpoint::read_tensors(const fs::path& file) {
  if (has_gguf_ending(file)) return GgufFile::open(file).tensors();
  if (has_torch_ending(file)) return TorchFile::open(file).tensors();
  const SafetensorsFile safetensors = SafetensorsFile::open(file);
  // Metadata are free text: what does not name a tensor of the file is something else.
  for (const auto& [name, stored] : safetensors.metadata())
    if (safetensors.find(stored) != nullptr) aliases_.emplace(name, stored);
  return safetensors.tensors();
}

void Checkpoint::open_file(const fs::path& path) {
  files_.push_back(path);
  tensors_ = read_tensors(path);
  std::sort(tensors_.begin(), tensors_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

void Checkpoint::open_shards(const fs::path& index) {
  const auto index_file = MappedFile::open(index);
  const auto shard_of = parse_weight_map(index_file->text(), index.string());

  std::set<std::string> shard_names;
  for (const auto& [tensor, shard] : shard_of) shard_names.insert(shard);
  std::map<std::string, std::string> found_in;
  for (const std::string& shard : shard_names) {
    if (!is_there(folder_ / shard))
      fail("checkpoint: '{}' names the shard '{}', which is not in the folder", index.string(),
           printable(shard));
    files_.push_back(folder_ / shard);
    for (const TensorView& tensor : read_tensors(files_.back())) {
      const auto [first, inserted] = found_in.emplace(tensor.name, shard);
      if (!inserted)
        fail("checkpoint: '{}': tensor '{}' is in two shards, '{}' and '{}'", folder_.string(),
             printable(tensor.name), printable(first->second), printable(shard));
      tensors_.push_back(tensor);
    }
  }
  for (const auto& [tensor, shard] : shard_of) {
    const auto found = found_in.find(tensor);
    if (found == found_in.end() || found->second != shard)
      fail("checkpoint: '{}' lists tensor '{}' in the shard '{}', which does not hold it",
           index.string(), printable(tensor), printable(shard));
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

bool Checkpoint::is_gguf() const { return files_.size() == 1 && has_gguf_ending(files_[0]); }

std::vector<StoredParameter> Checkpoint::parameters() const {
  std::vector<StoredParameter> parameters;
  for (const TensorView& tensor : tensors_) {
    const std::string matrix(matrix_of_integers(tensor.name));
    if (!matrix.empty()) {
      const TensorView& scales = at(scales_name(matrix));
      try {
        check_eight_bits(tensor, scales);
      } catch (const Error& error) {
        fail("checkpoint: '{}': {}", folder_.string(), error.what());
      }
      parameters.push_back({matrix, &tensor, &scales});
    } else if (const std::string_view scaled = matrix_of_scales(tensor.name);
               scaled.empty() || find(integers_name(scaled)) == nullptr) {
      parameters.push_back({tensor.name, &tensor});
    }
  }
  for (const auto& [name, stored] : aliases_)
    if (find(name) == nullptr) parameters.push_back({name, &at(stored)});
  return parameters;
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorView& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const TensorView& Checkpoint::at(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  fail("checkpoint: '{}' has no tensor '{}'{}", folder_.string(), printable(name),
       nearest_tensor_names(name, std::move(names)));
}

}  // namespace filigree
