// What a model family provides. Adding a family is one file that defines these and one line in
// family.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/model.h"
#include "json/object.h"

namespace filigree {

// How a parameter starts in a model that is made, not read.
enum class Initial { kNormal, kZeros, kOnes };

struct ParameterSpec {
  std::string name;  // as this program writes it
  Shape shape;
  Initial initial = Initial::kNormal;
  float deviation = 0.02f;  // of kNormal
  // Of rows (or numbers) for q, k and v of heads: in a file those of a head lie together, here all
  // queries before all keys before all values. 0: as in the file.
  std::int64_t interleaved_heads = 0;
  // The extents in a file, where they are others: of rank 3 and `by_head` [heads, in, D], whose
  // heads are side by side here, [in, heads D]; else the same numbers in the same order.
  Shape file_shape = {};
  bool by_head = false;
  // Rows (or numbers) of so many heads, the first `paired_width` of each of which rotary positions
  // turn: in a file pair i is 2 i and 2 i + 1, here i and i + half. 0: as in the file.
  std::int64_t paired_heads = 0, paired_width = 0;
  bool may_be_absent = false;  // a file without it has it as it starts: zeros, or ones

  // Whether a file has the numbers in another order.
  bool reorders() const { return interleaved_heads != 0 || by_head || paired_heads != 0; }
  const Shape& stored_shape() const { return file_shape.rank() > 0 ? file_shape : shape; }
};

// A parameter in the order of its file from ours, and back, always of our shape; the tensor itself
// where they agree.
Tensor in_file_order(const ParameterSpec& spec, const Tensor& value);
Tensor in_our_order(const ParameterSpec& spec, const Tensor& value);

struct Family {
  std::string_view model_type;

  // Reads config.json. Throws Error for values that the forward pass does not implement.
  ModelConfig (*read_config)(const JsonObject& json);

  std::vector<ParameterSpec> (*parameters)(const ModelConfig& config);

  // The parameter that a checkpoint's tensor name stands for, "" for tensors that are known and not
  // needed (masks, tied copies); other names are returned as they are.
  std::string (*canonical_name)(const ModelConfig& config, std::string_view name);

  // The parameters are those of parameters(), in that order.
  std::unique_ptr<Model> (*build)(const ModelConfig& config,
                                  std::vector<NamedParameter> parameters);
};

// Of any extent in a configuration: far above every model, far below overflow.
inline constexpr std::int64_t kMostExtent = 1 << 24;

// Extents under GPT-2's names: n_layer, n_head, n_embd, n_inner, n_positions, vocab_size, and
// layer_norm_epsilon.
void read_gpt2_extents(const JsonObject& json, ModelConfig& config);

// The activation that config.json calls `key`, by transformers' names; the fallback when it is
// absent. Throws Error listing those that there are.
Activation read_activation(const JsonObject& json, std::string_view key, std::string_view fallback);

// Rotary positions: base, scaling and the share of a head that is turned, into `config`, whose
// head_width and context are known. They stand in the section rope_parameters of transformers 5, or
// as older files have it in rope_theta, rope_scaling and partial_rotary_factor (or what the keys
// here call them). Throws Error for kinds of scaling that are not implemented, and for keys that no
// kind has.
struct RotaryKeys {
  const char* base = "rope_theta";
  const char* share = nullptr;  // null: whole heads only
  double default_share = 1.0;
  double default_base = 10000.0;
  // Layers with a window turn by angles of their own: rope_parameters has a section for each of
  // "full_attention" and "sliding_attention"; older files have the base of the second under
  // `window_base` (null: as that of the first) and scale the first alone.
  bool by_layer = false;
  const char* window_base = nullptr;
  double default_window_base = 10000.0;
  // Phi 3: scaling is longrope, whatever older files call it, and the context that it begins from
  // stands beside the section, or is this; 0 elsewhere.
  double longrope_context = 0.0;
};
void read_rotary(const JsonObject& json, ModelConfig& config, const RotaryKeys& keys = {});

// The window of each layer: those that layer_types calls "sliding_attention", or without that key
// those for which `slides` says so, have `window`.
std::vector<std::int64_t> read_windows(const JsonObject& json, std::int64_t layers,
                                       std::int64_t window,
                                       const std::function<bool(std::int64_t)>& slides);

// A flag of the configuration as it was read; read_config has seen to its type.
bool flag_of(const ModelConfig& config, std::string_view key, bool fallback);

// Throws Error listing the families there are.
const Family& family_of(std::string_view model_type, const std::string& source);

}  // namespace filigree
