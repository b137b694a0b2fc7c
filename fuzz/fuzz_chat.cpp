// Chat templates: the input as a template for a conversation, and as what is said in conversations
// that templates of the usual shapes write.
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "filigree/error.h"
#include "fuzz_target.h"
#include "text/chat_template.h"
#include "text/jinja/jinja.h"

namespace {

using filigree::ChatMessage;

std::string write(std::string_view source, std::string_view said, bool generation) {
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", std::string(said)}, {"assistant", "Yes."}};
  return filigree::chat_text(source, messages, generation, {.begin = "<s>", .end = "</s>"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const bool generation : {true, false})
    filigree::fuzz::attempt([&] {
      const std::string text = write(input, "Hello", generation);
      filigree::fuzz::expect(text.size() <= filigree::jinja::kMaxOutputBytes,
                             "the text is no longer than it may be");
      filigree::fuzz::expect(filigree::is_valid_utf8(text), "the text is UTF-8");
      filigree::fuzz::note_outcome("accepted");
    });
  filigree::fuzz::attempt([&] {
    const std::string text = write(
        "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}", input, true);
    filigree::fuzz::expect(text.find(input) != std::string::npos, "what is said is in the text");
  });
  return 0;
}
