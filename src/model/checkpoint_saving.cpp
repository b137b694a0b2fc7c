// Writing a model as a Hugging Face folder.
#include "base/atomic_file.h"
#include "base/folders.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "io/checkpoint.h"
#include "io/folder_checksums.h"
#include "io/matrix_type.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "model/adapters_file.h"
#include "model/family.h"
#include "model/gate_json.h"

namespace filigree {
namespace {

// The two tensors of an 8-bit matrix, made one after the other in `buffer`.
void add_eight_bits(std::vector<TensorToWrite>& tensors, const NamedParameter& parameter,
                    const ParameterSpec& spec, std::vector<std::byte>& buffer) {
  const Shape& shape = spec.stored_shape();
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  const auto width = static_cast<std::size_t>(extents.back());
  const auto rows = static_cast<std::size_t>(shape.elements()) / width;
  // `write` puts row i, given with its scale, into the buffer.
  const auto add = [&](std::string name, TensorKind kind, std::vector<std::int64_t> of_shape,
                       std::size_t bytes, const auto& write) {
    tensors.push_back({std::move(name), kind, std::move(of_shape),
                       [&buffer, parameter, spec, width, rows, bytes, write] {
                         buffer.resize(bytes);
                         const Tensor value = in_file_order(
                             spec, parameter.variable.value().to(DeviceKind::kCpu).to(DType::kF32));
                         for (std::size_t i = 0; i < rows; ++i) {
                           const std::span<const float> row(value.f32() + i * width, width);
                           const float scale = row_scale(row);
                           require(std::isfinite(scale),
                                   "tensor '{}' has a value that is not finite; i8 has none",
                                   parameter.name);
                           write(i, row, scale, buffer.data());
                         }
                         return std::span<const std::byte>(buffer);
                       }});
  };
  add(integers_name(parameter.name), TensorKind::kI8, extents, rows * width,
      [width](std::size_t i, std::span<const float> row, float scale, std::byte* to) {
        to_integers(row, scale, reinterpret_cast<std::int8_t*>(to) + i * width);
      });
  extents.pop_back();
  add(scales_name(parameter.name), TensorKind::kF32, extents, rows * sizeof(float),
      [](std::size_t i, std::span<const float>, float scale, std::byte* to) {
        std::memcpy(to + i * sizeof(float), &scale, sizeof scale);
      });
}

void write_parameters(const std::filesystem::path& path,
                      const std::vector<NamedParameter>& parameters,
                      const std::vector<ParameterSpec>& specs, MatrixType type) {
  Tensor converted;  // the one tensor that is being written, when it needs converting
  std::vector<std::byte> integers;
  const DType dtype = number_type(type);
  std::vector<TensorToWrite> tensors;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const NamedParameter& parameter = parameters[p];
    ParameterSpec spec;
    if (p < specs.size())
      spec = specs[p];
    else
      spec.shape = parameter.variable.shape();
    const Shape& shape = spec.stored_shape();
    if (type == MatrixType::kI8 && parameter.variable.shape().rank() > 1) {
      add_eight_bits(tensors, parameter, spec, integers);
      continue;
    }
    tensors.push_back({parameter.name, kind_of(dtype),
                       std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end()),
                       [&converted, dtype, spec, variable = parameter.variable] {
                         const Tensor here = variable.value().to(DeviceKind::kCpu).to(DType::kF32);
                         converted = in_file_order(spec, here).to(dtype);
                         return std::span(converted.raw(), converted.bytes());
                       }});
  }
  write_safetensors(path, std::move(tensors));
}

}  // namespace

void save_model(const Model& model, const std::filesystem::path& folder,
                const SaveOptions& options) {
  require(!model.lora() || options.keep_adapters,
          "cannot save to '{}': the model has LoRA adapters that other programs would not see; "
          "merge them first (merge_lora)",
          folder.string());
  make_folders(folder);
  // What an earlier model in this folder says about itself goes first: an interrupted save must not
  // leave it beside other weights. The configuration comes back last, and makes it a model.
  const std::filesystem::path adapters = folder / kAdaptersFile;
  const bool eight_bits = options.dtype == MatrixType::kI8;
  const std::filesystem::path other_weights =
      folder / (eight_bits ? kWeightsFile : kEightBitWeightsFile);
  bool removed = false;
  for (const std::filesystem::path& file :
       {folder / kChecksumsFile, folder / "config.json", adapters, other_weights})
    removed = remove_file(file) || removed;
  if (removed) flush_folder(folder);
  write_parameters(folder / (eight_bits ? kEightBitWeightsFile : kWeightsFile), model.parameters(),
                   family_of(model.config().family, "save").parameters(model.config()),
                   options.dtype);
  if (model.lora()) write_parameters(adapters, model.lora_parameters(), {}, MatrixType::kF32);

  nlohmann::json config = model.config().source;
  constexpr const char* kNames[] = {"float32", "bfloat16", "float16"};
  config["dtype"] = kNames[static_cast<int>(number_type(options.dtype))];
  config.erase("torch_dtype");  // the older name of the same key
  config.erase("gate");
  if (model.config().gate.on()) config["gate"] = gate_json(model.config());
  config.erase("lora");
  if (model.lora()) config["lora"] = {{"rank", model.lora()->rank}, {"alpha", model.lora()->alpha}};
  const std::filesystem::path last = folder / "config.json";
  const std::string text = json_text(last, config);
  write_checksums(folder, model_files_in(folder), {{"config.json", text}});
  write_file_atomically(last, text);
}

}  // namespace filigree
