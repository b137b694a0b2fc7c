// Requests of the live page, as text of HTTP without its last word: a line "POST /api/look",
// headers, an empty line, the body. They pass the guard and are answered by a small model.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "fuzz_target.h"
#include "json/object.h"
#include "serve/api.h"
#include "serve/guard.h"

namespace filigree {
namespace {

std::vector<study::LoadedModel> small_model() {
  const ModelConfig config = parse_model_config({{"model_type", "gpt2"},
                                                 {"n_layer", 1},
                                                 {"n_head", 2},
                                                 {"n_embd", 8},
                                                 {"n_positions", 32},
                                                 {"vocab_size", 8192}},
                                                "small_model");
  std::vector<study::LoadedModel> models;
  models.emplace_back("small", "small", make_model(config, 1),
                      FILIGREE_SOURCE_DIR "/tests/golden/bpe-8k");
  return models;
}

serve::Limits small_limits() {
  serve::Limits limits;
  limits.running_jobs = 0;  // their requests are read, and no thread outlives an input
  return limits;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// What is not answered says why and what to do.
void check(const serve::Answer& answer, const char* who) {
  fuzz::expect(answer.status != 500, "no request makes the server fail");
  if (answer.status < 400) return;
  const JsonObject failure = JsonObject::parse(answer.body, "answer");
  const std::string error = failure.string("error");
  fuzz::expect(!error.empty() && !failure.string("remedy").empty(), who);
  fuzz::note_outcome(error);
}

void serve_request(std::string_view text) {
  static serve::Api api(small_model(), {}, small_limits());
  static const serve::Guard guard("127.0.0.1", "", api.limits());
  const std::string_view first = take_line(text);
  const std::size_t space = std::min(first.find(' '), first.size());
  serve::RequestHead head = {std::string(first.substr(0, space)),
                             std::string(first.substr(std::min(space + 1, first.size()))),
                             {}};
  for (std::string_view line = take_line(text); !line.empty(); line = take_line(text)) {
    const std::size_t colon = std::min(line.find(": "), line.size());
    head.headers.emplace_back(line.substr(0, colon), line.substr(std::min(colon + 2, line.size())));
  }
  if (const std::optional<serve::Answer> refused = guard.refuse(head))
    check(*refused, "the guard says why it refuses");
  check(api.answer({head.method, head.path, std::string(text), {}}), "the API says why it refuses");
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  filigree::serve_request({reinterpret_cast<const char*>(data), size});
  return 0;
}
