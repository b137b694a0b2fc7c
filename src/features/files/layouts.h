// The layouts of transcoders that others write, each as one description of where everything lies.
// All throw Error naming file and tensor.
#pragma once

#include <filesystem>
#include <optional>

#include "features/files/stored_dictionary.h"
#include "io/stored_checksums.h"

namespace filigree {

// A folder with config.yaml.
StoredTranscoder open_circuit_tracer(const std::filesystem::path& folder);
// One file.
StoredTranscoder open_clt_forge(const std::filesystem::path& file);
// Folders that are named after layers.
StoredTranscoder open_sparsify(const std::filesystem::path& folder);
StoredTranscoder open_gemma_scope(const std::filesystem::path& folder);

// Whether the folder looks like one of the last three; of CLT-Forge the file.
std::optional<std::filesystem::path> find_clt_forge(const std::filesystem::path& path);
bool is_sparsify(const std::filesystem::path& folder);
bool is_gemma_scope(const std::filesystem::path& folder);

// The tensors of a file, whose mapping they share.
class TensorFile {
 public:
  // .npz or safetensors. What is read of it is compared with `checksums`, which has those of the
  // folder; for a look at the names there need be none.
  static TensorFile open(const std::filesystem::path& path, StoredChecksums* checksums = nullptr);

  bool has(std::string_view name) const;
  // Checks the shape as StoredTensor does.
  StoredTensor at(std::string_view name, std::initializer_list<std::int64_t> shape) const;
  // Rows of a matrix; with `eight_bit` of its integers and scales (matrix_type.h).
  StoredMatrix matrix(std::string_view name, std::initializer_list<std::int64_t> shape,
                      bool eight_bit) const;
  // One number a feature; a single one stands for all. Undefined when there is none.
  Tensor thresholds(std::string_view name, std::int64_t features) const;
  bool is_npz() const { return npz_; }
  const std::filesystem::path& path() const { return file_->path(); }

 private:
  StoredTensor find(std::string_view name) const;

  std::shared_ptr<const MappedFile> file_;
  std::vector<TensorView> tensors_;
  bool npz_ = false;
};

// One layer of a per-layer transcoder, by the names of any of these layouts.
StoredLayer open_layer(const std::filesystem::path& path, StoredChecksums& checksums,
                       bool eight_bit = false);
// All of them. Throws Error unless they have equal sizes.
StoredTranscoder per_layer_transcoder(const std::vector<std::filesystem::path>& files,
                                      StoredChecksums& checksums, bool eight_bit = false);

}  // namespace filigree
