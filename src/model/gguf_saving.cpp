#include "model/gguf_saving.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/folders.h"
#include "filigree/error.h"
#include "filigree/layers.h"
#include "io/matrix_type.h"
#include "model/family.h"
#include "model/gguf_families.h"
#include "model/stored_parameters.h"

namespace filigree {
namespace {

// general.file_type.
std::int64_t file_type(MatrixType type) {
  return type == MatrixType::kF32 ? 0 : type == MatrixType::kF16 ? 1 : 32;
}

// Where files say them by a tensor: what each angle is divided by.
std::vector<float> rotary_factors(const ModelConfig& config) {
  std::vector<float> factors;
  if (config.rotary_scaling.kind != RotaryScaling::Kind::kLlama3) return factors;
  const std::vector<double> plain = rotary_steps(config.rotary_width, config.rotary_base);
  const std::vector<double> scaled =
      rotary_steps(config.rotary_width, config.rotary_base, config.rotary_scaling);
  for (std::size_t i = 0; i < plain.size(); ++i)
    factors.push_back(static_cast<float>(plain[i] / scaled[i]));
  return factors;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(a); }

// The first thing in which the model that a file describes differs; empty where there is none.
std::string difference(const ModelConfig& a, const ModelConfig& b) {
  const std::pair<const char*, bool> same[] = {
      {"shape", a.layers == b.layers && a.heads == b.heads && a.key_heads == b.key_heads &&
                    a.width == b.width && a.head_width == b.head_width &&
                    a.mlp_width == b.mlp_width && a.vocabulary == b.vocabulary},
      {"context", a.context == b.context},
      {"activation", a.activation == b.activation},
      {"tied output", a.tied_embeddings == b.tied_embeddings},
      {"norms", a.norm == b.norm && near(a.norm_epsilon, b.norm_epsilon) &&
                    a.norm_around_one == b.norm_around_one && a.branch_norms == b.branch_norms &&
                    a.query_key_norm == b.query_key_norm},
      {"positions", a.positions == b.positions && a.rotary_width == b.rotary_width &&
                        near(a.rotary_base, b.rotary_base)},
      {"scaling of positions",
       a.rotary_scaling.kind == b.rotary_scaling.kind &&
           near(a.rotary_scaling.factor, b.rotary_scaling.factor) &&
           near(a.rotary_scaling.low_frequency, b.rotary_scaling.low_frequency) &&
           near(a.rotary_scaling.high_frequency, b.rotary_scaling.high_frequency)},
      {"scale of scores", near(a.attention_scale, b.attention_scale) &&
                              a.scale_by_layer == b.scale_by_layer && a.clip_qkv == b.clip_qkv},
      {"scale of embeddings", near(a.embedding_scale, b.embedding_scale)},
      {"windows", a.windows == b.windows},
      {"soft caps",
       near(a.score_soft_cap, b.score_soft_cap) && near(a.logit_soft_cap, b.logit_soft_cap)},
      {"residual stream", a.residual == b.residual && a.mlp == b.mlp},
      {"gates", a.gate.bias == b.gate.bias}};
  for (const auto& [what, equal] : same)
    if (!equal) return what;
  return "";
}

}  // namespace

void save_gguf(const Model& model, const std::filesystem::path& path, MatrixType type,
               const GgufEntries& tokenizer) {
  const ModelConfig& config = model.config();
  require(!model.lora(), "cannot save '{}': the model has LoRA adapters; merge them first",
          path.string());
  require(type != MatrixType::kI8,
          "cannot save '{}': i8 is this program's own; a GGUF file is written in f32, bf16 or f16",
          path.string());
  const GgufFamily& family = gguf_family_of(config.family, path.string());
  GgufEntries entries;
  write_gguf_config(config, path.string(), entries);
  entries.integer("general.file_type", file_type(type));
  entries.append(tokenizer);

  const std::vector<ParameterSpec> specs = family_of(config.family, "save").parameters(config);
  const std::vector<NamedParameter>& parameters = model.parameters();
  Tensor converted;  // the one tensor that is being written
  std::vector<TensorToWrite> tensors;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const ParameterSpec& spec = specs[p];
    const GgufParameter stored = tensor_of(family, spec.name);
    const DType dtype = spec.shape.rank() > 1 ? number_type(type) : DType::kF32;
    tensors.push_back({stored.name, kind_of(dtype), stored_shape(spec, stored.form),
                       [&, dtype, form = stored.form, variable = parameters[p].variable] {
                         const Tensor here = variable.value().to(DeviceKind::kCpu).to(DType::kF32);
                         converted = to_stored(spec, form, config, here).to(dtype);
                         return std::span(converted.raw(), converted.bytes());
                       }});
  }
  const std::vector<float> factors = rotary_factors(config);
  if (!factors.empty())
    tensors.push_back(tensor_to_write("rope_freqs.weight", TensorKind::kF32,
                                      {static_cast<std::int64_t>(factors.size())},
                                      std::as_bytes(std::span(factors))));
  write_gguf(path, entries, tensors);
  const std::string lost = difference(config, read_model_config(path));
  if (lost.empty()) return;
  remove_file(path);
  fail("cannot save '{}': a GGUF file of architecture {} does not say the {} of this model",
       path.string(), family.architecture, lost);
}

}  // namespace filigree
