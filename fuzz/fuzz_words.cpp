// What people and pages write in a few words: heads, parts, features, taps, changes of a run, lists
// of tokens; and the flat YAML of transcoders' configurations.
#include <string>
#include <string_view>

#include "features/files/flat_yaml.h"
#include "filigree/features.h"
#include "filigree/interventions.h"
#include "filigree/maps.h"
#include "filigree/names.h"
#include "fuzz_target.h"

namespace filigree {
namespace {

void read_yaml(std::string_view text) {
  try {
    const FlatYaml yaml = FlatYaml::parse(text, "input");
    // What was read can be written and read again.
    std::string again;
    for (const auto& [key, value] : yaml.values()) {
      again += yaml_text(key) + ": ";
      if (const auto* one = std::get_if<std::string>(&value)) {
        again += yaml_text(*one);
      } else {
        again += "[";
        for (const std::string& item : std::get<std::vector<std::string>>(value))
          again += yaml_text(item) + ", ";
        again += "]";
      }
      again += "\n";
    }
    fuzz::expect(FlatYaml::parse(again, "again").values() == yaml.values(),
                 "a configuration is the same after rewriting");
    fuzz::note_outcome("a configuration");
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
}

void read_names(std::string_view text) {
  fuzz::attempt([&] {
    const Component part = parse_component(text);
    fuzz::expect(name_of(part) == text, "a part is called by its name");
  });
  fuzz::attempt([&] {
    fuzz::expect(feature_name(parse_feature(text)) == text, "a feature is called by its name");
  });
  fuzz::attempt([&] {
    for (const HeadId& head : parse_heads(text, 3, 4))
      fuzz::expect(head.layer >= 0 && head.layer < 3 && head.head >= 0 && head.head < 4,
                   "heads are the model's");
  });
  fuzz::attempt([&] { check_heads(text); });
  fuzz::attempt([&] { parse_tap_place(text); });
  fuzz::attempt([&] { text_of(parse_steering(text)); });
  for (const auto add :
       {&Interventions::add_ablations, &Interventions::add_scales, &Interventions::add_patch})
    fuzz::attempt([&] {
      Interventions changes;
      (changes.*add)(text);
      fuzz::expect(!text_of(changes).empty(), "changes can be named");
      const std::string tokens[] = {"a", " John", "b"};
      changes.resolve_positions(tokens);
    });
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  filigree::read_yaml(text);
  filigree::read_names(text);
  return 0;
}
