#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/file_status.h"
#include "features/files/layouts.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/matrix_type.h"
#include "io/npz_file.h"
#include "json/object.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 4;  // folders inside a layer's of Gemma Scope
constexpr const char* kSparsifyConfig = "cfg.json";
constexpr const char* kGemmaScopeFile = "params.npz";

// Those inside `folder`, none where it is none itself; links to folders count.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  if (!is_folder(folder)) return folders;
  for (const FolderEntry& entry : entries_of(folder))
    if (is_folder(folder / entry.name)) folders.push_back(folder / entry.name);
  return folders;
}

std::optional<std::int64_t> whole_number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// 5 of "layers.5.mlp", "h.5.mlp" and "gpt_neox.layers.5.mlp".
std::optional<std::int64_t> layer_of_module(const fs::path& folder) {
  std::string name = folder.filename().string();
  if (!name.ends_with(".mlp")) return std::nullopt;
  name.resize(name.size() - 4);
  return whole_number_of(std::string_view(name).substr(name.rfind('.') + 1));
}

// 5 of "layer_5".
std::optional<std::int64_t> layer_of_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with("layer_")) return std::nullopt;
  return whole_number_of(std::string_view(name).substr(6));
}

void find_files(const fs::path& folder, const char* name, int depth, std::vector<fs::path>& found) {
  if (is_file(folder / name)) found.push_back(folder / name);
  if (depth == 0) return;
  for (const fs::path& entry : folders_in(folder)) find_files(entry, name, depth - 1, found);
}

// The folders of layers 0, 1, ...
std::vector<fs::path> layer_folders(
    const fs::path& folder, const std::function<std::optional<std::int64_t>(const fs::path&)>& of) {
  std::map<std::int64_t, fs::path> by_layer;
  for (const fs::path& entry : folders_in(folder)) {
    const auto layer = of(entry);
    if (!layer) continue;
    if (!by_layer.emplace(*layer, entry).second)
      fail("'{}' has layer {} twice", folder.string(), *layer);
  }
  std::vector<fs::path> folders;
  for (const auto& [layer, path] : by_layer) {
    if (layer != static_cast<std::int64_t>(folders.size()))
      fail("'{}' has no layer {}; all layers of a model are needed", folder.string(),
           folders.size());
    folders.push_back(path);
  }
  return folders;
}

fs::path only_safetensors(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const FolderEntry& entry : entries_of(folder))
    if (entry.name.ends_with(".safetensors")) files.push_back(folder / entry.name);
  if (files.size() != 1)
    fail("'{}' has {} safetensors files, should have one", folder.string(), files.size());
  return files[0];
}

}  // namespace

TensorFile TensorFile::open(const fs::path& path, StoredChecksums* checksums) {
  TensorFile file;
  file.file_ = MappedFile::open(path, WhileMapped::kMustNotChange);
  file.npz_ = path.extension() == ".npz";
  const auto check = checksums != nullptr ? checksums->of(file.file_) : nullptr;
  const std::span<const std::byte> bytes = file.file_->bytes();
  // The header says where everything lies. Where only the whole file has a checksum, that waits
  // until numbers are wanted.
  if (check != nullptr && check->by_block()) check->require(bytes.first(1));
  file.tensors_ = file.npz_
                      ? NpzFile::from_bytes(bytes, path.string(), file.file_).tensors()
                      : SafetensorsFile::from_bytes(bytes, path.string(), file.file_).tensors();
  if (check == nullptr) return file;
  for (TensorView& view : file.tensors_) view.check = check;
  if (check->by_block() && !file.tensors_.empty())
    check->require({bytes.data(), file.tensors_.front().data.data()});
  return file;
}

bool TensorFile::has(std::string_view name) const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const TensorView& view) { return view.name == name; });
}

StoredTensor TensorFile::find(std::string_view name) const {
  for (const TensorView& view : tensors_)
    if (view.name == name) return {view, file_};
  std::vector<std::string> names;
  for (const TensorView& view : tensors_) names.push_back(view.name);
  fail("'{}' has no tensor '{}'{}", path().string(), name,
       nearest_tensor_names(name, std::move(names)));
}

StoredTensor TensorFile::at(std::string_view name,
                            std::initializer_list<std::int64_t> shape) const {
  StoredTensor tensor = find(name);
  tensor.check(std::span(shape.begin(), shape.size()));
  return tensor;
}

StoredMatrix TensorFile::matrix(std::string_view name, std::initializer_list<std::int64_t> shape,
                                bool eight_bit) const {
  StoredTensor tensor = find(eight_bit ? integers_name(name) : std::string(name));
  const std::span wanted(shape.begin(), shape.size());
  eight_bit ? tensor.check_shape(wanted) : tensor.check(wanted);
  const std::vector<std::int64_t> extents = tensor.view.shape;
  const std::int64_t rows = extents[0];
  const std::int64_t width = extents[1] * (extents.size() > 2 ? extents[2] : 1);
  if (!eight_bit) return {std::move(tensor), rows, width};
  const StoredTensor scales = find(scales_name(name));
  scales.view.bytes();  // damage of the file is told of before what it does to the numbers
  try {
    check_eight_bits(tensor.view, scales.view);
  } catch (const Error& error) {
    fail("'{}': {}", path().string(), error.what());
  }
  return {std::move(tensor), scales.read(), rows, width};
}

Tensor TensorFile::thresholds(std::string_view name, std::int64_t features) const {
  if (!has(name)) return {};
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorView& view) { return view.name == name; });
  StoredTensor tensor{*found, file_};
  const std::int64_t count = found->element_count();
  tensor.view.shape = {count};
  tensor.check(std::vector<std::int64_t>{count == 1 ? 1 : features});
  const Tensor values = tensor.read();
  for (const float value : values.values())
    require(value >= 0.0f, "{} has the threshold {}; they are not negative", tensor.label(), value);
  return count == features ? values : Tensor::full({features}, values.f32()[0]);
}

StoredLayer open_layer(const fs::path& path, StoredChecksums& checksums, bool eight_bit) {
  const TensorFile file = TensorFile::open(path, &checksums);
  const bool sparsify = file.has("encoder.weight");
  const std::string_view encoder = sparsify ? "encoder.weight" : "W_enc";
  const bool by_column = file.is_npz();
  const auto transposed = [&] {
    const StoredTensor weight = file.at(encoder, {-1, -1});
    return StoredMatrix(weight, weight.view.shape[1], weight.view.shape[0], true);
  };
  const StoredMatrix weight = by_column ? transposed() : file.matrix(encoder, {-1, -1}, eight_bit);
  const std::int64_t features = weight.rows(), width = weight.width();
  StoredLayer layer{
      weight,
      file.at(sparsify ? "encoder.bias" : "b_enc", {features}).read(),
      file.thresholds(by_column ? "threshold" : "activation_function.threshold", features),
      {file.matrix("W_dec", {features, width}, eight_bit)},
      file.at("b_dec", {width}).read()};
  if (file.has("W_skip")) layer.skip = file.at("W_skip", {width, width});
  return layer;
}

StoredTranscoder per_layer_transcoder(const std::vector<fs::path>& files,
                                      StoredChecksums& checksums, bool eight_bit) {
  StoredTranscoder stored;
  for (const fs::path& file : files) {
    stored.layers.push_back(open_layer(file, checksums, eight_bit));
    const StoredLayer &layer = stored.layers.back(), &first = stored.layers.front();
    if (layer.encoder.rows() != first.encoder.rows() ||
        layer.encoder.width() != first.encoder.width())
      fail(
          "'{}' has {} features of width {}, '{}' has {} of width {}; all layers have equally many",
          file.string(), layer.encoder.rows(), layer.encoder.width(), files[0].string(),
          first.encoder.rows(), first.encoder.width());
  }
  require(!stored.layers.empty(), "transcoder: no layers");
  stored.shape = {TranscoderKind::kPerLayer, static_cast<std::int64_t>(stored.layers.size()),
                  stored.layers[0].encoder.width(), stored.layers[0].encoder.rows(),
                  std::any_of(stored.layers.begin(), stored.layers.end(),
                              [](const StoredLayer& layer) { return layer.skip.has_value(); })};
  check_shape(stored.shape);
  return stored;
}

bool is_sparsify(const fs::path& folder) {
  const std::vector<fs::path> entries = folders_in(folder);
  return std::any_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    return layer_of_module(entry) && is_file(entry / kSparsifyConfig);
  });
}

StoredTranscoder open_sparsify(const fs::path& folder) {
  std::vector<fs::path> files;
  std::int64_t k = 0;
  for (const fs::path& layer : layer_folders(folder, layer_of_module)) {
    const JsonObject config = JsonObject::open(layer / kSparsifyConfig);
    if (!config.boolean_or("transcode", false) && !config.boolean_or("skip_connection", false))
      fail("'{}' is an autoencoder (transcode is false), not a transcoder", config.source());
    const std::string activation = config.string_or("activation", "topk");
    if (activation != "topk")
      fail("'{}': activation '{}' is not known; it is topk", config.source(),
           printable(activation));
    const std::int64_t own = config.integer("k", 1, INT32_MAX);
    if (!files.empty() && own != k)
      fail("'{}': k is {}, but {} in the layers before", config.source(), own, k);
    k = own;
    files.push_back(only_safetensors(layer));
  }
  StoredChecksums checksums;
  StoredTranscoder stored = per_layer_transcoder(files, checksums);
  stored.k = k;
  return stored;
}

bool is_gemma_scope(const fs::path& folder) {
  std::vector<fs::path> found;
  find_files(folder / "layer_0", kGemmaScopeFile, kDeepest, found);
  return !found.empty();
}

StoredTranscoder open_gemma_scope(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& layer : layer_folders(folder, layer_of_folder)) {
    std::vector<fs::path> found;
    find_files(layer, kGemmaScopeFile, kDeepest, found);
    if (found.size() != 1)
      fail("'{}' has {} files {}, should have one: keep one width and sparsity of each layer",
           layer.string(), found.size(), kGemmaScopeFile);
    files.push_back(found[0]);
  }
  StoredChecksums checksums;
  return per_layer_transcoder(files, checksums);
}

}  // namespace filigree
