// A task that a model of random weights can do, for tests.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "filigree/tasks.h"
#include "support/model_folder.h"

namespace filigree {

// A random model can do one thing: what it does. Its likeliest next tokens after clean and corrupt
// prompts, where they differ, are the answers of a task at which it is always right.
inline void write_own_task(const ModelFolder& folder, const std::string& file, std::size_t count) {
  const std::unique_ptr<Model> model = load_model(folder.path());
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
  const TaskDefinition& task = task_definition("induction");
  TaskOptions options;
  options.prompts = 200;
  std::ofstream out(file);
  std::size_t written = 0;
  for (const TaskPrompt& prompt :
       make_task(task, corruption_of(task, "all-tokens"), tokenizer, options).prompts) {
    const auto likeliest = [&](bool corrupt) {
      const Tensor logits =
          model->forward(prompt_ids({&prompt}, corrupt), {.last_position_only = true}).value();
      return tokenizer.decode(std::vector<TokenId>{static_cast<TokenId>(
          std::max_element(logits.f32(), logits.f32() + logits.elements()) - logits.f32())});
    };
    const PromptText text = {
        prompt.text.clean, prompt.text.corrupt, {likeliest(false)}, {likeliest(true)}};
    if (!is_valid_utf8(text.answers[0]) || !is_valid_utf8(text.wrong[0]) ||
        !fit(text, tokenizer, {}).prompt)
      continue;
    out << nlohmann::json{{"clean", text.clean},
                          {"corrupt", text.corrupt},
                          {"answer", text.answers[0]},
                          {"wrong", text.wrong}}
        << "\n";
    if (++written == count) return;
  }
  FAIL() << "only " << written << " prompts on which the model tells clean from corrupt";
}

// Adds two prompts that do not fit as they are: one whose corrupt text has another length, one with
// an answer of several tokens.
inline void write_awkward_prompts(const std::string& file) {
  std::ofstream out(file, std::ios::app);
  out << nlohmann::json{{"clean", "the king"},
                        {"corrupt", "the king of the hill"},
                        {"answer", " of"},
                        {"wrong", " to"}}
      << "\n"
      << nlohmann::json{{"clean", "the king"},
                        {"corrupt", "the man"},
                        {"answer", " extraordinarily long"},
                        {"wrong", " to"}}
      << "\n";
}

}  // namespace filigree
