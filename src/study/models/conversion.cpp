#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "base/file_status.h"
#include "base/folders.h"
#include "base/output_folder.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "io/checkpoint.h"
#include "io/gguf.h"
#include "io/matrix_type.h"
#include "json/json.h"
#include "model/gguf_saving.h"
#include "model/mix_models.h"
#include "text/gguf_tokenizer.h"

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
  require(!model.config().gate.on(), "{} has gates already; gates raise changes their biases",
          printable(request.model));
  model.set_gate({{*request.gate_bias}});
}

// The configuration that a request names or completes; nothing: the model's own.
std::optional<ModelConfig> asked_config(const ConversionRequest& request, const fs::path& from) {
  nlohmann::json lens;
  if (request.config.ends_with(".json") && is_file(from)) {
    const nlohmann::json json = read_json(request.config);
    // TransformerLens's names need say only what the file does not.
    const bool partial =
        json.is_object() && json.value("model_type", "hooked_transformer") == "hooked_transformer";
    if (partial) lens = json;
  }
  if (!request.config.empty() && lens.is_null()) return named_config(request.config);
  const auto say = [&](const char* key, const std::string& value) {
    if (!value.empty()) lens[key] = value == "none" ? nlohmann::json() : nlohmann::json(value);
  };
  say("attention_dir", request.lens.attention_dir);
  say("act_fn", request.lens.act_fn);
  say("normalization_type", request.lens.normalization_type);
  say("positional_embedding_type", request.lens.positional_embedding_type);
  if (request.lens.unscaled) lens["use_attn_scale"] = false;
  if (request.lens.parallel) lens["parallel_attn_mlp"] = true;
  if (lens.is_null()) return std::nullopt;
  if (!is_file(from))
    throw RequestError(fmt::format("'{}' is a folder, whose config.json says what the model is",
                                   printable(request.model)));
  return read_model_config(from, lens);
}

void mix_with_other(Model& model, const fs::path& from, const ConversionRequest& request) {
  if (request.mix_with.empty()) return;
  const ModelSource source = model_source(request.mix_with);
  const fs::path& folder = source.folder;
  const fs::path own = tokenizer_folder(from), others = tokenizer_folder(folder);
  require(!has_tokenizer(own) || !has_tokenizer(others) ||
              tokenizer_fingerprint(Tokenizer::from_folder(own)) ==
                  tokenizer_fingerprint(Tokenizer::from_folder(others)),
          "'{}' has another tokenizer than '{}'; only models of one can be mixed",
          printable(request.mix_with), printable(request.model));
  const std::unique_ptr<Model> other = source.load();
  other->merge_lora();
  mix_models(model, *other, request.mix_share);
}

void require_finite(const Model& model, MatrixType dtype) {
  for (const NamedParameter& parameter : model.parameters())
    require_finite_as(dtype,
                      parameter.variable.value().to(DeviceKind::kCpu).to(DType::kF32).values(),
                      parameter.name);
}

// Returns the bytes of the file.
std::uint64_t save_as_gguf(const Model& model, const fs::path& tokenizer,
                           const ConversionRequest& request) {
  if (request.not_finite == NotFinite::kRefuse) require_finite(model, request.dtype);
  GgufEntries entries;
  std::optional<Tokenizer> own;
  if (has_tokenizer(tokenizer)) own = Tokenizer::from_folder(tokenizer);
  if (own) write_gguf_tokenizer(*own, model.config().vocabulary, entries);
  save_gguf(model, request.out, request.dtype, entries);
  if (own && Tokenizer::from_folder(request.out).rules_fingerprint() != own->rules_fingerprint())
    warn(
        "'{}': a GGUF file cannot say all that the tokenizer does with spaces and composed "
        "characters; some texts will be other tokens than with the folder",
        printable(request.out.string()));
  return bytes_of_file(request.out);
}

}  // namespace

Conversion run(const ConversionRequest& request, Models, const Context& context) {
  if (!std::isfinite(request.raise_gates))
    throw RequestError("what gates are raised by must be a finite number");
  if (!(request.mix_share >= 0.0 && request.mix_share <= 1.0))
    throw RequestError(fmt::format(
        "the share of the model to mix with is {}; it lies between 0 and 1", request.mix_share));
  const ModelSource source = model_source(request.model, context.adapter);
  const fs::path& from = source.folder;
  const bool as_gguf = has_gguf_ending(request.out);
  std::optional<OutputFolder> out;
  if (as_gguf)
    require(!is_there(request.out), "'{}' is there already; choose another name or remove it",
            printable(request.out.string()));
  else
    out.emplace(request.out);
  refuse_model_in(request.out);
  LoadOptions load;
  load.config = asked_config(request, from);
  const std::unique_ptr<Model> model = source.load(load);
  model->merge_lora();
  put_gates_on(*model, request);
  mix_with_other(*model, from, request);
  raise_gates(*model, request);
  // Of a file, the folder that it lies in; else of the one that gave the configuration.
  const fs::path folder = tokenizer_folder(from);
  const bool other = !has_tokenizer(folder) && is_folder(request.config);
  const fs::path tokenizer = other ? fs::path(request.config) : folder;
  const std::uint64_t bytes =
      as_gguf ? save_as_gguf(*model, tokenizer, request)
              : save_converted(*model, tokenizer, request.out, request.dtype, request.not_finite);
  return {request, model->parameter_count(), bytes, has_tokenizer(request.out)};
}

void refuse_model_in(const fs::path& out) {
  require(!is_there(out / "config.json"),
          "'{}' holds a model already; choose another folder or remove it",
          printable(out.string()));
}

std::uint64_t save_converted(const Model& model, const fs::path& from, const fs::path& out,
                             MatrixType dtype, NotFinite not_finite) {
  if (not_finite == NotFinite::kRefuse) require_finite(model, dtype);
  make_folders(out);
  copy_tokenizer(from, out);
  save_model(model, out, {.dtype = dtype});  // last: it makes it a whole model
  return bytes_of_file(out / (dtype == MatrixType::kI8 ? kEightBitWeightsFile : kWeightsFile));
}

Json to_json(const Conversion& conversion) {
  return {{"model", conversion.request.model},
          {"out", conversion.request.out.string()},
          {"dtype", name_of(conversion.request.dtype)},
          {"mixed_with",
           conversion.request.mix_with.empty() ? Json(nullptr) : Json(conversion.request.mix_with)},
          {"mix_share", conversion.request.mix_with.empty() ? Json(nullptr)
                                                            : Json(conversion.request.mix_share)},
          {"raised_gates", conversion.request.raise_gates},
          {"gate_bias",
           conversion.request.gate_bias ? Json(*conversion.request.gate_bias) : Json(nullptr)},
          {"parameters", conversion.parameters},
          {"bytes", conversion.bytes},
          {"tokenizer", conversion.tokenizer}};
}

Knobs knobs_of(ConversionRequest& request) {
  Knobs knobs;
  knobs.section("Weights");
  knobs.choice(
      {.name = "not-finite", .what = "weights that are NaN or infinite, or too large for --dtype"},
      request.not_finite);
  knobs.section("State dicts of TransformerLens, what they do not tell");
  knobs.text({.name = "attention-dir", .what = "causal or bidirectional"},
             request.lens.attention_dir);
  knobs.text({.name = "act-fn", .what = "relu, gelu, gelu_new, silu, solu or solu_ln"},
             request.lens.act_fn);
  knobs.text({.name = "normalization-type", .what = "none, LNPre or RMSPre"},
             request.lens.normalization_type);
  knobs.text({.name = "positional-embedding-type", .what = "standard, shortformer or rotary"},
             request.lens.positional_embedding_type);
  knobs.flag({.name = "unscaled-attention", .what = "scores are not divided by sqrt(d_head)"},
             request.lens.unscaled);
  knobs.flag({.name = "parallel-attn-mlp", .what = "MLPs read what the attention reads"},
             request.lens.parallel);
  return knobs;
}

}  // namespace filigree::study
