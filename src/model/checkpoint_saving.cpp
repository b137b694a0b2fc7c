// Writing a model as a Hugging Face folder.
#include "base/error.h"
#include "io/json.h"
#include "io/safetensors_writer.h"
#include "model/model.h"

namespace filigree {

void save_model(const Model& model, const std::filesystem::path& folder,
                const SaveOptions& options) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  require(!failure && std::filesystem::is_directory(folder), "cannot create '{}': {}",
          folder.string(), failure ? failure.message() : "a file of that name exists");
  const TensorKind kind = kind_of(options.dtype);
  Tensor converted;  // the one tensor that is being written, when it needs converting
  std::vector<TensorToWrite> tensors;
  for (const NamedParameter& parameter : model.parameters()) {
    const Shape& shape = parameter.variable.shape();
    tensors.push_back({parameter.name, kind,
                       std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end()),
                       [&converted, &options, variable = parameter.variable] {
                         converted = variable.value().to(options.dtype);
                         return std::span(converted.raw(), converted.bytes());
                       }});
  }
  write_safetensors(folder / "model.safetensors", std::move(tensors));

  nlohmann::json config = model.config().source;
  constexpr const char* kNames[] = {"float32", "bfloat16", "float16"};
  config["dtype"] = kNames[static_cast<int>(options.dtype)];
  config.erase("torch_dtype");  // the older name of the same key
  config.erase("gate");
  const std::vector<float>& bias = model.config().gate.bias;
  if (bias.size() == 1) config["gate"] = {{"bias", bias[0]}};
  if (bias.size() > 1) {
    nlohmann::json rows = nlohmann::json::array();
    const auto heads = static_cast<std::size_t>(model.config().heads);
    for (std::size_t begin = 0; begin < bias.size(); begin += heads)
      rows.push_back(std::vector<float>(bias.begin() + static_cast<std::ptrdiff_t>(begin),
                                        bias.begin() + static_cast<std::ptrdiff_t>(begin + heads)));
    config["gate"] = {{"bias", rows}};
  }
  write_json(folder / "config.json", config);
}

}  // namespace filigree
