// A model's loss and open edges on a text.
#pragma once

#include <string>

#include "apps/cli/program/session.h"
#include "apps/cli/training/evaluation_report.h"
#include "filigree/train/evaluation_windows.h"

namespace filigree::cli {

struct EvaluationText {
  std::string text;    // <|endoftext|> may separate documents
  std::string source;  // for messages
  bool replace_invalid_utf8 = false;
};

// `name` is a model folder or name. Throws Error for a text of less than two tokens. Shows a bar.
EvaluatedModel evaluate_on_text(const std::string& name, const std::string& label,
                                const EvaluationText& text, const WindowOptions& options,
                                const Session& session);

}  // namespace filigree::cli
