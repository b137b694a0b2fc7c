#include "apps/cli/training/text_evaluation.h"

#include <memory>
#include <vector>

#include "apps/cli/program/input.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/model/model.h"

namespace filigree::cli {
namespace {

// The bytes of text that the first `targets` targets stand for: all tokens but the first, which
// nothing predicts, and but the special ones, which mark where documents end and are no text.
std::int64_t predicted_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                             std::int64_t targets) {
  std::int64_t bytes = 0;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(targets); ++i)
    if (!tokenizer.is_special(ids[i]))
      bytes += static_cast<std::int64_t>(tokenizer.token_bytes(ids[i]).size());
  return bytes;
}

}  // namespace

EvaluatedModel evaluate_on_text(const std::string& name, const std::string& label,
                                const EvaluationText& text, const WindowOptions& options,
                                const Session& session) {
  const std::filesystem::path folder = model_folder(name);
  const Tokenizer tokenizer = open_tokenizer(folder.string());
  const std::vector<TokenId> ids =
      encode_text(tokenizer, text.text, text.source,
                  {.replace_invalid_utf8 = text.replace_invalid_utf8}, kReplaceInvalid);
  require(ids.size() >= 2, "{} is a single token for '{}'; a loss needs at least two", text.source,
          printable(name));
  const std::unique_ptr<Model> model = load_model(folder, {.placement = session.placement()});
  check_ids(ids, model->config().vocabulary, name);
  const EvaluationWindows windows = text_windows(ids, options, model->config());
  const std::int64_t bytes = predicted_bytes(tokenizer, ids, windows.targets);
  EvaluatedModel result = evaluate_with_bar(*model, windows, label, session);
  result.model = name;
  result.length = window_length(options, model->config());
  result.bytes = bytes;
  return result;
}

}  // namespace filigree::cli
