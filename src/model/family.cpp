#include "filigree/model/family.h"

#include "filigree/base/error.h"
#include "filigree/base/names.h"
#include "filigree/base/strings.h"
#include "filigree/model/gpt2.h"
#include "filigree/model/llama.h"

namespace filigree {

const Family& family_of(std::string_view model_type, const std::string& source) {
  static const Family* const kFamilies[] = {&kGpt2Family, &kLlamaFamily};
  std::string known;
  for (const Family* family : kFamilies) {
    if (family->model_type == model_type) return *family;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", family->model_type);
  }
  fail("{}: model_type '{}' is not one this program runs; it runs {}", source,
       printable(model_type), known);
}

Activation read_activation(const JsonObject& json, std::string_view key,
                           std::string_view fallback) {
  struct Known {
    std::string_view name;
    Activation activation;
  };
  // Several names are one function.
  static constexpr Known kKnown[] = {
      {"gelu_new", Activation::kGeluNew},  {"gelu_pytorch_tanh", Activation::kGeluNew},
      {"gelu_fast", Activation::kGeluNew}, {"gelu", Activation::kGelu},
      {"relu", Activation::kRelu},         {"silu", Activation::kSilu},
      {"swish", Activation::kSilu}};
  const std::string name = json.string_or(key, std::string(fallback));
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (known.name == name) return known.activation;
    names.emplace_back(known.name);
  }
  fail("{}: {} '{}' is not supported; it may be {}", json.source(), key, printable(name),
       any_of_text(names));
}

double read_rotary_base(const JsonObject& json) {
  constexpr double kLeast = 1.0, kMost = 1e12;
  double base = json.number_or("rope_theta", 10000.0, kLeast, kMost);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!json.has(key)) continue;
    const JsonObject section = json.object(key);
    // The older key is "type".
    const std::string kind = section.string_or("rope_type", section.string_or("type", "default"));
    require(kind == "default",
            "{}: {} asks for rotary positions of the kind '{}', which is not supported; only "
            "'default' is",
            json.source(), key, printable(kind));
    base = section.number_or("rope_theta", base, kLeast, kMost);
  }
  return base;
}

}  // namespace filigree
