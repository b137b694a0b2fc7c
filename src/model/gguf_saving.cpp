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

// Where files say them by tensors: what each angle is divided by.
using RotaryFactors = std::vector<std::pair<const char*, std::vector<float>>>;

RotaryFactors rotary_factors(const ModelConfig& config) {
  const RotaryScaling& scaling = config.rotary_scaling;
  if (scaling.kind == RotaryScaling::Kind::kLongRope)
    return {{"rope_factors_long.weight", {scaling.far.begin(), scaling.far.end()}},
            {"rope_factors_short.weight", {scaling.near.begin(), scaling.near.end()}}};
  if (scaling.kind != RotaryScaling::Kind::kLlama3) return {};
  std::vector<float> factors;
  const std::vector<double> plain = rotary_steps(config.rotary_width, config.rotary_base);
  const std::vector<double> scaled =
      rotary_steps(config.rotary_width, config.rotary_base, config.rotary_scaling);
  for (std::size_t i = 0; i < plain.size(); ++i)
    factors.push_back(static_cast<float>(plain[i] / scaled[i]));
  return {{"rope_freqs.weight", factors}};
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(a); }

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return near(x, y); });
}

bool same(const RotaryScaling& a, const RotaryScaling& b) {
  return a.kind == b.kind && near(a.factor, b.factor) && near(a.low_frequency, b.low_frequency) &&
         near(a.high_frequency, b.high_frequency) && near(a.amplitude, b.amplitude) &&
         (a.kind == RotaryScaling::Kind::kLinear || a.original_context == b.original_context) &&
         a.whole_pairs == b.whole_pairs && near(a.near, b.near) && near(a.far, b.far);
}

// The first thing in which the model that a file describes differs; empty where there is none.
std::string difference(const ModelConfig& a, const ModelConfig& b) {
  const std::pair<const char*, bool> parts[] = {
      {"shape", a.layers == b.layers && a.heads == b.heads && a.key_heads == b.key_heads &&
                    a.width == b.width && a.head_width == b.head_width &&
                    a.mlp_width == b.mlp_width && a.vocabulary == b.vocabulary},
      {"context", a.context == b.context},
      {"activation", a.activation == b.activation},
      {"tied output", a.tied_embeddings == b.tied_embeddings},
      {"norms", a.norm == b.norm && near(a.norm_epsilon, b.norm_epsilon) &&
                    a.norm_around_one == b.norm_around_one && a.branch_norms == b.branch_norms &&
                    a.query_key_norm == b.query_key_norm},
      {"positions", a.positions == b.positions && a.first_position == b.first_position &&
                        a.rotary_width == b.rotary_width && a.turned == b.turned &&
                        near(a.rotary_base, b.rotary_base)},
      {"scaling of positions", same(a.rotary_scaling, b.rotary_scaling)},
      {"positions of layers with a window",
       !a.window_rotary || (b.window_rotary && near(a.window_rotary->base, b.window_rotary->base) &&
                            same(a.window_rotary->scaling, b.window_rotary->scaling))},
      {"scale of logits", near(a.logit_scale, b.logit_scale)},
      {"scale of scores", near(a.attention_scale, b.attention_scale) &&
                              a.scale_by_layer == b.scale_by_layer && a.clip_qkv == b.clip_qkv},
      {"scale of embeddings", near(a.embedding_scale, b.embedding_scale)},
      {"windows", a.windows == b.windows},
      {"soft caps",
       near(a.score_soft_cap, b.score_soft_cap) && near(a.logit_soft_cap, b.logit_soft_cap)},
      {"residual stream", a.residual == b.residual && a.mlp == b.mlp},
      {"gates", a.gate.bias == b.gate.bias}};
  for (const auto& [what, equal] : parts)
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
  const RotaryFactors of_angles = rotary_factors(config);
  for (const auto& [name, factors] : of_angles)
    tensors.push_back(tensor_to_write(name, TensorKind::kF32,
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
