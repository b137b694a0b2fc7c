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
  bool may_be_absent = false;  // a file without it has it as it starts: zeros, or ones

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

// The activation that config.json calls `key`, by transformers' names; the fallback when it is
// absent. Throws Error listing those that there are.
Activation read_activation(const JsonObject& json, std::string_view key, std::string_view fallback);

// Rotary positions: base, scaling and the share of a head that is turned, into `config`, whose
// head_width is known. They stand in the section rope_parameters of transformers 5, or as older
// files have it in rope_theta, rope_scaling and partial_rotary_factor (or what `older` calls them).
// Throws Error for kinds of scaling that are not implemented, and for keys that no kind has.
struct RotaryKeys {
  const char* base = "rope_theta";
  const char* share = nullptr;  // null: whole heads only
  double default_share = 1.0;
};
void read_rotary(const JsonObject& json, ModelConfig& config, const RotaryKeys& older = {});

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
