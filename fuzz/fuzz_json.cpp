// JSON text through everything that reads it from memory: the document parser, the typed reader of
// configurations and the shard index of a checkpoint.
#include <string>
#include <string_view>

#include "filigree/base/error.h"
#include "filigree/io/checkpoint.h"
#include "filigree/io/json.h"
#include "fuzz_target.h"

namespace filigree {
namespace {

template <typename Action>
void attempt(Action action) {
  try {
    action();
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
}

void read_as_configuration(const nlohmann::json& value) {
  const JsonObject config(value, "input");
  for (const std::string& key : config.keys()) {
    attempt([&] { config.integer(key, 1, 4096); });
    attempt([&] { config.number(key, 0, 1); });
    attempt([&] { config.boolean(key); });
    attempt([&] { config.string(key); });
    attempt([&] { config.integer(key + "x"); });
    attempt([&] {
      const JsonObject nested = config.object(key);
      nested.integer_or("n_head", 12);
      nested.string("model_type");
    });
  }
}

void read(std::string_view text) {
  attempt([&] {
    const nlohmann::json value = parse_json(text, "input");
    fuzz::expect(parse_json(value.dump(), "input") == value, "a document survives its own text");
    read_as_configuration(value);
  });
  attempt([&] {
    for (const auto& [tensor, shard] : parse_shard_index(text, "input"))
      fuzz::expect(!shard.empty() && shard.find('/') == std::string::npos && shard != "..",
                   "a shard is a plain file name");
  });
  attempt([&] {
    parse_json(text, "input",
               {.max_bytes = 4096, .max_depth = 3, .max_values = 20, .allow_duplicate_keys = true});
  });
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  filigree::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
