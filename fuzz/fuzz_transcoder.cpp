// Folders of transcoders: files one after the other, each after a line "=== NAME". They are written
// and opened as a folder.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/scratch_folder.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "fuzz_target.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "=== ";
constexpr std::array kFileNames = {"config.yaml",           "W_enc_0.safetensors",
                                   "W_dec_0.safetensors",   "layer_0.safetensors",
                                   "layers.0.mlp/cfg.json", "layers.0.mlp/sae.safetensors",
                                   "layer_0/params.npz",    "clt.safetensors"};

void open_folder(const fs::path& folder) {
  try {
    const auto dictionary = open_dictionary(folder);
    const TranscoderShape& shape = dictionary->shape();
    const std::int32_t first = 0;
    for (std::int64_t l = 0; l < shape.layers; ++l) {
      const FeatureRows rows = dictionary->rows(l, std::span(&first, 1));
      fuzz::expect(rows.decoder.elements() == shape.reach(l) * shape.width, "rows are whole");
      const SparseCode code = dictionary->encode(l, Tensor::full({2, shape.width}, 1.0f));
      fuzz::expect(code.rows == 2 && code.features == shape.features, "codes are of the layer");
    }
    fuzz::note_outcome("a transcoder");
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace filigree;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ScratchFolder folder;
  bool any = false;
  for (std::size_t at = bytes.find(kMark); at != std::string_view::npos;) {
    const std::size_t next = bytes.find(kMark, at + kMark.size());
    const std::string_view part = bytes.substr(at + kMark.size(), next - at - kMark.size());
    const std::size_t line = part.find('\n');
    for (const char* name : kFileNames) {
      if (line == std::string_view::npos || part.substr(0, line) != name) continue;
      const std::filesystem::path path = folder.path() / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << part.substr(line + 1);
      any = true;
    }
    at = next;
  }
  if (any) open_folder(folder.path());
  return 0;
}
