// What info shows of a tokenizer: the tokens of a text, and the text of token ids.
#pragma once

#include <CLI/App.hpp>

#include <memory>
#include <optional>
#include <string>

#include "apps/cli/program/session.h"
#include "filigree/knobs.h"

namespace filigree::cli {

struct TextTokens {
  std::optional<std::string> prompt;
  std::string text;       // a file
  std::string ids;        // to decode; "-": those of the text
  bool only_ids = false;  // shown instead of a table
  bool special = true;
  bool replace_invalid = false;

  void add_options(CLI::App& app);
  void add_knobs(Knobs& knobs);

  // Whether a text or ids were given.
  bool given() const { return prompt || !text.empty() || !ids.empty(); }
  // With neither, the text is that of standard input. `tokenizer` is a model's folder or name, or a
  // tokenizer's.
  void show(const std::string& tokenizer, const Session& session) const;
};

}  // namespace filigree::cli
