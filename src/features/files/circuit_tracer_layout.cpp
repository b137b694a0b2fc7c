#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/file_status.h"
#include "features/files/circuit_tracer_names.h"
#include "features/files/flat_yaml.h"
#include "features/files/layouts.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/matrix_type.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

// The MLP's own input and output have other names here.
std::string own_hook(const std::string& hook) {
  if (hook == "mlp.hook_in") return "ln2.hook_normalized";
  if (hook == "mlp.hook_out") return "hook_mlp_out";
  return hook;
}

FlatYaml open_config(const fs::path& folder, StoredChecksums& checksums) {
  const auto file = MappedFile::open(folder / kTranscoderConfig);
  if (const auto check = checksums.of(file)) check->require(file->bytes());
  return FlatYaml::parse(file->text(), file->path().string());
}

StoredTranscoder open_cross_layer(const fs::path& folder, StoredChecksums& checksums,
                                  bool eight_bit) {
  std::int64_t layers = 0;
  while (is_file(folder / encoder_file(layers))) ++layers;
  if (layers == 0) fail("'{}' has no {}", folder.string(), encoder_file(0));
  StoredTranscoder stored;
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto name = [l](const char* what) { return fmt::format("{}_{}", what, l); };
    const TensorFile encoders = TensorFile::open(folder / encoder_file(l), &checksums);
    const TensorFile decoders = TensorFile::open(folder / decoder_file(l), &checksums);
    const StoredMatrix encoder =
        l == 0 ? encoders.matrix(name("W_enc"), {-1, -1}, eight_bit)
               : encoders.matrix(name("W_enc"), {stored.shape.features, stored.shape.width},
                                 eight_bit);
    const std::int64_t features = encoder.rows(), width = encoder.width();
    stored.shape = {TranscoderKind::kCrossLayer, layers, width, features, false};
    check_shape(stored.shape);
    stored.layers.push_back(
        {encoder,
         encoders.at(name("b_enc"), {features}).read(),
         encoders.thresholds(name("threshold"), features),
         {decoders.matrix(name("W_dec"), {features, layers - l, width}, eight_bit)},
         encoders.at(name("b_dec"), {width}).read()});
  }
  return stored;
}

std::int64_t top_k(const FlatYaml& config) {
  const std::string& text = config.text("k");
  std::int64_t k = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), k);
  if (failure != std::errc() || end != text.data() + text.size() || k < 1 || k > INT32_MAX)
    fail("'{}': k is '{}', should be a whole number from 1", config.source(), printable(text));
  return k;
}

bool is_eight_bit(const FlatYaml& config) {
  if (!config.has(kMatrixTypeKey)) return false;
  const std::string& type = config.text(kMatrixTypeKey);
  if (type != name_of(MatrixType::kI8))
    fail("'{}': {} '{}' is not known; it is {}, or absent where tensors say their type themselves",
         config.source(), kMatrixTypeKey, printable(type), name_of(MatrixType::kI8));
  return true;
}

// Of a key that may be anything.
std::string text_if_any(const FlatYaml& config, const std::string& key) {
  const auto found = config.values().find(key);
  if (found == config.values().end()) return {};
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? std::string() : *text;
}

std::vector<fs::path> layer_files(const fs::path& folder, const FlatYaml& config) {
  std::vector<fs::path> files;
  if (config.has("transcoders")) {
    for (const std::string& name : config.list("transcoders")) {
      if (name.find("://") != std::string::npos)
        fail("'{}': '{}' is not on this machine; download it and write its path", config.source(),
             printable(name));
      files.push_back(folder / name);
    }
    return files;
  }
  for (std::int64_t l = 0; is_file(folder / layer_file(l)); ++l)
    files.push_back(folder / layer_file(l));
  if (files.empty()) fail("'{}' has no {}", folder.string(), layer_file(0));
  return files;
}

}  // namespace

std::string encoder_file(std::int64_t layer) { return fmt::format("W_enc_{}.safetensors", layer); }
std::string decoder_file(std::int64_t layer) { return fmt::format("W_dec_{}.safetensors", layer); }
std::string layer_file(std::int64_t layer) { return fmt::format("layer_{}.safetensors", layer); }

StoredTranscoder open_circuit_tracer(const fs::path& folder) {
  StoredChecksums checksums;
  const FlatYaml config = open_config(folder, checksums);
  const std::string& kind = config.text("model_kind");
  const bool eight_bit = is_eight_bit(config);
  StoredTranscoder stored;
  if (kind == kCrossLayerKind)
    stored = open_cross_layer(folder, checksums, eight_bit);
  else if (kind == kPerLayerKind)
    stored = per_layer_transcoder(layer_files(folder, config), checksums, eight_bit);
  else
    fail("'{}': model_kind '{}' is not known; it is {} or {}", config.source(), printable(kind),
         kCrossLayerKind, kPerLayerKind);
  if (config.text_or("activation", "relu") == "topk") stored.k = top_k(config);
  stored.hooks.input = own_hook(config.text_or("feature_input_hook", stored.hooks.input));
  stored.hooks.output = own_hook(config.text_or("feature_output_hook", stored.hooks.output));
  stored.model_name = text_if_any(config, "model_name");
  stored.scan = text_if_any(config, "scan");
  return stored;
}

}  // namespace filigree
