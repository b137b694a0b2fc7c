#include "features/files/transcoder_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/atomic_file.h"
#include "base/file_status.h"
#include "base/folders.h"
#include "features/files/circuit_tracer_names.h"
#include "features/files/flat_yaml.h"
#include "filigree/error.h"
#include "io/folder_checksums.h"
#include "io/matrix_type.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNumbersAtOnce = std::int64_t{1} << 21;

// What stands in the file for rows [begin, begin + count), to `to`.
using WriteBlock = std::function<void(const Tensor& rows, std::byte* to)>;

// Made when its turn comes, in a buffer that all tensors of a file share one after the other.
TensorToWrite rows_to_write(std::string name, TensorKind kind, std::vector<std::int64_t> shape,
                            const LayerToWrite::Rows& rows, std::int64_t numbers_a_row,
                            const std::shared_ptr<std::vector<std::byte>>& buffer,
                            const WriteBlock& write) {
  const std::size_t bytes = tensor_bytes(name, kind, shape);
  const std::int64_t features = shape[0];
  return {std::move(name), kind, std::move(shape), [=] {
            buffer->resize(bytes);
            const std::int64_t at_once =
                std::clamp<std::int64_t>(kNumbersAtOnce / numbers_a_row, 1, features);
            const std::size_t row_bytes = bytes / static_cast<std::size_t>(features);
            for (std::int64_t begin = 0; begin < features; begin += at_once)
              write(rows(begin, std::min(at_once, features - begin)),
                    buffer->data() + static_cast<std::size_t>(begin) * row_bytes);
            return std::span<const std::byte>(*buffer);
          }};
}

// Each stretch of `width` numbers with its scale.
template <typename Take>
void for_each_row(const Tensor& rows, std::int64_t width, const std::string& name,
                  const Take& take) {
  for (std::int64_t i = 0; i < rows.elements() / width; ++i) {
    const std::span<const float> row(rows.f32() + i * width, static_cast<std::size_t>(width));
    const float scale = row_scale(row);
    require(std::isfinite(scale), "transcoder: {} has a value that is not finite; i8 has none",
            name);
    take(i, row, scale);
  }
}

// Without quotes where it is a name, which those that come from files need not be.
std::string hook_text(const std::string& hook) {
  const bool plain = std::all_of(hook.begin(), hook.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  return plain && !hook.empty() ? hook : yaml_text(hook);
}

// circuit-tracer counts files, so none of an earlier transcoder may stay.
void remove_old(const fs::path& folder) {
  remove_file(folder / kTranscoderConfig);
  remove_file(folder / kChecksumsFile);
  for (const auto& file_of : {encoder_file, decoder_file, layer_file})
    for (std::int64_t l = 0; remove_file(folder / file_of(l)); ++l) {
    }
}

}  // namespace

TranscoderWriter::TranscoderWriter(fs::path folder, const TranscoderShape& shape,
                                   TranscoderExport options)
    : folder_(std::move(folder)), shape_(shape), options_(std::move(options)) {
  make_folders(folder_);
  remove_old(folder_);
}

void TranscoderWriter::check_finite(const std::string& name, const Tensor& numbers,
                                    MatrixType type) const {
  if (options_.not_finite == NotFinite::kRefuse) require_finite_as(type, numbers.values(), name);
}

TensorToWrite TranscoderWriter::numbers_to_write(const std::string& name, const Tensor& tensor,
                                                 MatrixType type) const {
  const DType dtype = number_type(type);
  const auto extents = tensor.shape().extents();
  const auto kept = std::make_shared<Tensor>();
  return {name, kind_of(dtype), {extents.begin(), extents.end()}, [=, this] {
            const Tensor here = tensor.to(DeviceKind::kCpu);
            check_finite(name, here, type);
            *kept = here.to(dtype);
            return std::span(kept->raw(), kept->bytes());
          }};
}

void TranscoderWriter::add_matrix(std::vector<TensorToWrite>& tensors, const std::string& name,
                                  std::vector<std::int64_t> rows_shape,
                                  const LayerToWrite::Rows& rows) const {
  const std::int64_t width = shape_.width;
  const std::int64_t numbers_a_row = (rows_shape.size() > 1 ? rows_shape[1] : 1) * width;
  std::vector<std::int64_t> shape = rows_shape;
  shape.push_back(width);
  const auto buffer = std::make_shared<std::vector<std::byte>>();
  const auto add = [&](const std::string& tensor, TensorKind kind,
                       std::vector<std::int64_t> extents, const WriteBlock& write) {
    tensors.push_back(
        rows_to_write(tensor, kind, std::move(extents), rows, numbers_a_row, buffer, write));
  };
  if (options_.dtype != MatrixType::kI8) {
    const DType dtype = number_type(options_.dtype);
    return add(name, kind_of(dtype), shape,
               [this, dtype, name](const Tensor& block, std::byte* to) {
                 check_finite(name, block, options_.dtype);
                 const Tensor numbers = block.to(dtype);
                 std::memcpy(to, numbers.raw(), numbers.bytes());
               });
  }
  add(scales_name(name), TensorKind::kF32, rows_shape,
      [name, width](const Tensor& block, std::byte* to) {
        for_each_row(block, width, name, [to](std::int64_t i, std::span<const float>, float scale) {
          std::memcpy(to + i * static_cast<std::int64_t>(sizeof scale), &scale, sizeof scale);
        });
      });
  add(integers_name(name), TensorKind::kI8, shape,
      [name, width](const Tensor& block, std::byte* to) {
        for_each_row(block, width, name,
                     [to, width](std::int64_t i, std::span<const float> row, float scale) {
                       to_integers(row, scale, reinterpret_cast<std::int8_t*>(to) + i * width);
                     });
      });
}

void TranscoderWriter::write_file(const std::string& name, std::vector<TensorToWrite> tensors) {
  write_safetensors(folder_ / name, std::move(tensors));
  files_.push_back(name);
  bytes_ += bytes_of_file(folder_ / name);
}

void TranscoderWriter::add(const LayerToWrite& layer) {
  const std::int64_t l = layers_++;
  const bool cross = shape_.kind == TranscoderKind::kCrossLayer;
  const auto name = [&](const char* what) {
    return cross ? fmt::format("{}_{}", what, l) : std::string(what);
  };
  std::vector<TensorToWrite> tensors = {
      numbers_to_write(name("b_enc"), layer.encoder_bias, MatrixType::kF32),
      numbers_to_write(name("b_dec"), layer.decoder_bias, MatrixType::kF32)};
  if (layer.threshold.defined())
    tensors.push_back(numbers_to_write(cross ? name("threshold") : "activation_function.threshold",
                                       layer.threshold, MatrixType::kF32));
  if (layer.skip.defined())
    tensors.push_back(numbers_to_write("W_skip", layer.skip, options_.dtype));
  add_matrix(tensors, name("W_enc"), {shape_.features}, layer.encoder);
  if (cross) {
    std::vector<TensorToWrite> decoder;
    add_matrix(decoder, name("W_dec"), {shape_.features, shape_.reach(l)}, layer.decoder);
    write_file(decoder_file(l), std::move(decoder));
  } else {
    add_matrix(tensors, name("W_dec"), {shape_.features}, layer.decoder);
  }
  write_file(cross ? encoder_file(l) : layer_file(l), std::move(tensors));
}

void TranscoderWriter::commit() {
  require(layers_ == shape_.layers, "transcoder: {} layers of {} were written", layers_,
          shape_.layers);
  const bool cross = shape_.kind == TranscoderKind::kCrossLayer;
  std::string config = fmt::format(
      "model_name: {}\nmodel_kind: {}\nfeature_input_hook: {}\nfeature_output_hook: {}\n",
      yaml_text(options_.model_name), cross ? kCrossLayerKind : kPerLayerKind,
      hook_text(options_.hooks.input), hook_text(options_.hooks.output));
  if (options_.dtype == MatrixType::kI8)
    config += fmt::format("{}: {}\n", kMatrixTypeKey, name_of(options_.dtype));
  if (options_.k > 0) config += fmt::format("activation: topk\nk: {}\n", options_.k);
  if (!options_.scan.empty()) config += fmt::format("scan: {}\n", yaml_text(options_.scan));
  write_checksums(folder_, files_, {{kTranscoderConfig, config}}, ChecksumGrain::kBlocks);
  write_file_atomically(folder_ / kTranscoderConfig, config);
}

}  // namespace filigree
