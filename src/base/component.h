// The parts of a transformer that analyses speak of, and the one way to write them:
//
//   input     the embeddings          L3H7     head 7 of layer 3
//   logits                            L3 MLP   the MLP of layer 3
//                                     L3F250   feature 250 of layer 3's transcoder
//
// Tables, JSON, figures, files and the page all take the names from here, so that a part has the
// same name wherever it is met.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace filigree {

struct HeadId {
  std::int64_t layer = 0;
  std::int64_t head = 0;

  friend auto operator<=>(const HeadId&, const HeadId&) = default;
};

struct FeatureId {
  std::int64_t layer = 0;
  std::int64_t feature = 0;

  friend auto operator<=>(const FeatureId&, const FeatureId&) = default;
};

enum class ComponentKind { kInput, kHead, kMlp, kLogits };

struct Component {
  ComponentKind kind = ComponentKind::kInput;
  std::int64_t layer = 0;  // of heads and MLPs
  std::int64_t head = 0;   // of heads

  friend bool operator==(const Component&, const Component&) = default;
};

std::string layer_name(std::int64_t layer);          // "L3"
std::string head_name(const HeadId& head);           // "L3H7"
std::string mlp_name(std::int64_t layer);            // "L3 MLP"
std::string feature_name(const FeatureId& feature);  // "L3F250"
std::string name_of(const Component& component);

// The component of that very name, if it is one.
std::optional<Component> find_component(std::string_view name);

// The same; throws Error where it is none.
Component parse_component(std::string_view name);

// The feature of that very name, if it is one; the second throws Error where it is none.
std::optional<FeatureId> find_feature(std::string_view name);
FeatureId parse_feature(std::string_view name);

}  // namespace filigree
