#include <fmt/core.h>

#include <charconv>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// Takes `text` off the front of `rest`.
bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

// The same of a number as we write it: digits, without zeros before them.
bool take_number(std::string_view& rest, std::int64_t& number) {
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (failure != std::errc() || rest[0] == '-' || (rest[0] == '0' && digits > 1)) return false;
  rest.remove_prefix(digits);
  return true;
}

}  // namespace

std::string layer_name(std::int64_t layer) { return fmt::format("L{}", layer); }

std::string head_name(const HeadId& head) {
  return fmt::format("{}H{}", layer_name(head.layer), head.head);
}

std::string mlp_name(std::int64_t layer) { return layer_name(layer) + " MLP"; }

std::string expert_name(const ExpertId& expert) {
  return fmt::format("{}E{}", layer_name(expert.layer), expert.expert);
}

std::string feature_name(const FeatureId& feature) {
  return fmt::format("{}F{}", layer_name(feature.layer), feature.feature);
}

std::string name_of(const Component& component) {
  switch (component.kind) {
    case ComponentKind::kInput: return "input";
    case ComponentKind::kHead: return head_name({component.layer, component.head});
    case ComponentKind::kMlp: return mlp_name(component.layer);
    case ComponentKind::kExpert: return expert_name({component.layer, component.expert});
    case ComponentKind::kLogits: return "logits";
  }
  return "unknown";
}

std::optional<Component> find_component(std::string_view name) {
  if (name == "input") return Component{ComponentKind::kInput};
  if (name == "logits") return Component{ComponentKind::kLogits};
  Component found;
  std::string_view rest = name;
  if (!take(rest, "L") || !take_number(rest, found.layer)) return std::nullopt;
  if (take(rest, "H")) {
    found.kind = ComponentKind::kHead;
    if (!take_number(rest, found.head)) return std::nullopt;
  } else if (take(rest, "E")) {
    found.kind = ComponentKind::kExpert;
    if (!take_number(rest, found.expert)) return std::nullopt;
  } else {
    found.kind = ComponentKind::kMlp;
    if (!take(rest, " MLP")) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  return found;
}

Component parse_component(std::string_view name) {
  if (const std::optional<Component> found = find_component(name)) return *found;
  fail("'{}' is no part of a model; parts are written input, L3H7, L3 MLP, L3E5 and logits",
       printable(name));
}

std::optional<FeatureId> find_feature(std::string_view name) {
  FeatureId found;
  if (!take(name, "L") || !take_number(name, found.layer) || !take(name, "F") ||
      !take_number(name, found.feature) || !name.empty())
    return std::nullopt;
  return found;
}

FeatureId parse_feature(std::string_view name) {
  if (const std::optional<FeatureId> found = find_feature(name)) return *found;
  fail("'{}' is no feature; features are written L3F250", printable(name));
}

}  // namespace filigree
