// Reading PyTorch's state dicts (.pth, .pt, .bin) without PyTorch and without executing anything:
// the zip archives that torch.save has written since version 1.6, and the older files of pickles
// with the data behind them. The file is mapped; tensors that lie there as they are become views,
// others (transposed ones) are copied into order.
//
// After a file has opened, names are unique, every tensor lies inside its storage, and its data has
// the size of its shape. Of archives the CRC-32 of the dictionary has been compared, that of a
// storage is when a tensor in it is first read. The dictionary may be the file itself or its
// "state_dict", "model_state_dict", "model", "module", "net" or "weights"; what in it is no tensor
// is left out.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "io/zip_archive.h"

namespace filigree {

// Whether a file's name ends as those that torch.save writes: .pth, .pt, .bin or .ckpt.
bool has_torch_ending(const std::filesystem::path& path);

class TorchFile {
 public:
  static TorchFile open(const std::filesystem::path& path);

  // The same checks on bytes in memory, as SafetensorsFile::from_bytes().
  static TorchFile from_bytes(std::span<const std::byte> bytes, const std::string& source,
                              const std::shared_ptr<const void>& owner = nullptr,
                              ZipChecksums checksums = ZipChecksums::kCompare);

  // In the order of the dictionary.
  const std::vector<TensorView>& tensors() const { return tensors_; }

 private:
  TorchFile() = default;
  std::vector<TensorView> tensors_;
};

}  // namespace filigree
