// JSON text through everything that reads it from memory: the document parser, the typed reader of
// configurations, JSON Lines and the index of a checkpoint.
#include <string>
#include <string_view>

#include "fuzz_target.h"
#include "io/checkpoint.h"
#include "json/json.h"
#include "json/lines.h"
#include "json/object.h"

namespace filigree {
namespace {

void read_as_configuration(const nlohmann::json& value) {
  const JsonObject config(value, "input");
  for (const std::string& key : config.keys()) {
    fuzz::attempt([&] { config.integer(key, 1, 4096); });
    fuzz::attempt([&] { config.number(key, 0, 1); });
    fuzz::attempt([&] { config.boolean(key); });
    fuzz::attempt([&] { config.string(key); });
    fuzz::attempt([&] { config.integer(key + "x"); });
    fuzz::attempt([&] {
      const JsonObject nested = config.object(key);
      nested.integer_or("n_head", 12);
      nested.string("model_type");
    });
  }
}

std::size_t objects_in(std::string_view text, LastLine last) {
  std::size_t count = 0;
  for (JsonLines lines(text, "input", last); lines.next(); ++count)
    fuzz::expect(parse_json(lines.text(), "input") == lines.object().raw(),
                 "a line is a document of its own");
  return count;
}

void read(std::string_view text) {
  fuzz::attempt([&] {
    const nlohmann::json value = parse_json(text, "input");
    fuzz::expect(parse_json(value.dump(), "input") == value, "a document survives its own text");
    read_as_configuration(value);
  });
  fuzz::attempt([&] {
    for (const auto& [tensor, shard] : parse_weight_map(text, "input"))
      fuzz::expect(!shard.empty() && shard.find('/') == std::string::npos && shard != "..",
                   "a shard is a plain file name");
  });
  fuzz::attempt([&] { objects_in(text, LastLine::kMayBeCut); });
  fuzz::attempt([&] {
    const std::size_t whole = objects_in(text, LastLine::kWhole);
    fuzz::expect(objects_in(text, LastLine::kMayBeCut) == whole, "whole lines are never left out");
  });
  fuzz::attempt([&] {
    parse_json(text, "input",
               {.max_bytes = 4096, .max_depth = 3, .max_values = 20, .max_string_bytes = 8});
  });
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  filigree::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
