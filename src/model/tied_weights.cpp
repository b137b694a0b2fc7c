#include "model/tied_weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "filigree/error.h"

namespace filigree {
namespace {

// The one parameter that the model has besides when its output is not tied.
std::optional<std::string> output_name(const Family& family, const ModelConfig& tied,
                                       const ModelConfig& untied) {
  const std::vector<ParameterSpec> with = family.parameters(untied);
  const std::vector<ParameterSpec> without = family.parameters(tied);
  if (with.size() != without.size() + 1) return std::nullopt;
  for (const ParameterSpec& spec : with)
    if (std::none_of(without.begin(), without.end(),
                     [&](const ParameterSpec& other) { return other.name == spec.name; }))
      return spec.name;
  return std::nullopt;
}

bool same_numbers(const TensorView* a, const TensorView* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->kind != b->kind || a->shape != b->shape) return false;
  if (a->data.data() == b->data.data()) return true;  // one storage, as torch.save keeps it
  const std::span<const std::byte> left = a->bytes(), right = b->bytes();
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

}  // namespace

ModelConfig settle_tied_weights(const Family& family, ModelConfig config,
                                std::vector<StoredParameter>& stored, const std::string& source) {
  if (!config.tied_embeddings) return config;
  ModelConfig untied = config;
  untied.tied_embeddings = false;
  const std::optional<std::string> output = output_name(family, config, untied);
  if (!output) return config;
  const std::string embedding = family.parameters(config).front().name;
  const auto find = [&](const std::string& name) {
    return std::find_if(stored.begin(), stored.end(), [&](const StoredParameter& parameter) {
      return family.canonical_name(untied, parameter.name) == name;
    });
  };
  const auto own = find(embedding), head = find(*output);
  if (head == stored.end()) return config;
  if (own == stored.end()) {
    head->name = embedding;
    return config;
  }
  if (same_numbers(own->values, head->values) && same_numbers(own->scales, head->scales))
    return config;
  warn(
      "'{}': config.json ties the output layer to the embedding, but '{}' and '{}' are stored with "
      "different numbers, so they are not tied; \"tie_word_embeddings\": false says so",
      source, own->name, head->name);
  untied.source["tie_word_embeddings"] = false;
  return untied;
}

}  // namespace filigree
