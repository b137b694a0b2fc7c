#include "filigree/study/models/conversion.h"

#include <cmath>
#include <memory>

#include "filigree/base/error.h"
#include "filigree/base/folders.h"
#include "filigree/base/strings.h"
#include "filigree/io/checkpoint.h"
#include "filigree/json/json.h"
#include "filigree/model/model.h"
#include "filigree/study/context.h"
#include "filigree/study/model_places.h"
#include "filigree/study/models/model_shape.h"
#include "filigree/study/training/training_data.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

// A gate is open where q.k / sqrt(D) + b > 0.
void raise_gates(Model& model, const ConversionRequest& request) {
  if (request.raise_gates == 0.0f) return;
  GateConfig gate = model.config().gate;
  require(gate.on(), "{} has no gates to raise; sparse post-training makes them",
          printable(request.model));
  for (float& bias : gate.bias) bias += request.raise_gates;
  model.set_gate(gate);
}

void put_gates_on(Model& model, const ConversionRequest& request) {
  if (!request.gate_bias) return;
  require(!model.config().gate.on(), "{} has gates already; --raise-gates changes their biases",
          printable(request.model));
  model.set_gate({{*request.gate_bias}});
}

}  // namespace

Conversion convert_model(const ConversionRequest& request) {
  if (!std::isfinite(request.raise_gates))
    throw RequestError("what gates are raised by must be a finite number");
  const fs::path from = model_folder(request.model);
  std::error_code ignored;
  require(!fs::exists(request.out / "config.json", ignored),
          "'{}' holds a model already; choose another folder or remove it",
          printable(request.out.string()));
  LoadOptions load;
  if (!request.config.empty()) load.config = named_config(request.config);
  const std::unique_ptr<Model> model = load_model(from, load);
  model->merge_lora();
  put_gates_on(*model, request);
  raise_gates(*model, request);
  make_folders(request.out);
  // Of a file, the folder that it lies in; else of the one that gave the configuration.
  const fs::path folder = tokenizer_folder(from);
  const bool other = !has_tokenizer(folder) && fs::is_directory(request.config, ignored);
  copy_tokenizer(other ? fs::path(request.config) : folder, request.out);
  save_model(*model, request.out, {.dtype = request.dtype});  // last: it makes it a whole model
  const char* weights = request.dtype == MatrixType::kI8 ? kEightBitWeightsFile : kWeightsFile;
  return {request, model->parameter_count(),
          static_cast<std::uint64_t>(fs::file_size(request.out / weights)),
          has_tokenizer(request.out)};
}

Json to_json(const Conversion& conversion) {
  return {{"model", conversion.request.model},
          {"out", conversion.request.out.string()},
          {"dtype", name_of(conversion.request.dtype)},
          {"raised_gates", conversion.request.raise_gates},
          {"gate_bias",
           conversion.request.gate_bias ? Json(*conversion.request.gate_bias) : Json(nullptr)},
          {"parameters", conversion.parameters},
          {"bytes", conversion.bytes},
          {"tokenizer", conversion.tokenizer}};
}

}  // namespace filigree::study
