// A task's prompts as a model sees them: pairs of token sequences with right and wrong next tokens.
//
// Patching compares a clean and a corrupt run position by position and reads one next token, so a
// pair is of use only if both prompts have equally many tokens and the answers are single tokens
// that the tokenizer would cut off exactly where the prompt ends. fit() checks this and says why a
// pair does not fit; nothing is padded or cut to make it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus/task.h"
#include "text/tokenizer.h"

namespace filigree {

struct PromptText {
  std::string clean;
  std::string corrupt;
  std::vector<std::string> answers;  // with the space before them, where there is one
  std::vector<std::string> wrong;
  std::vector<RoleSpan> roles = {};  // of the clean prompt
};

struct TaskPrompt {
  PromptText text = {};
  std::vector<TokenId> clean;
  std::vector<TokenId> corrupt;  // as many
  std::vector<TokenId> answers;  // next tokens; no token is in both lists
  std::vector<TokenId> wrong;
  std::vector<std::string> tokens = {};  // texts of the clean tokens, for the reader
  std::vector<std::string> roles = {};   // what each is to the task (roles_of); "": nothing

  std::int64_t length() const { return static_cast<std::int64_t>(clean.size()); }
  // First position at which the two differ; everything before it is the same in both runs.
  std::int64_t first_difference() const;
};

enum class DropReason {
  kEmpty,
  kSame,
  kDifferentLengths,
  kTooLong,
  kJoined,
  kSeveralTokens,
  kSharedToken,
  kOutsideVocabulary,
  kRepeated,
};
inline constexpr std::size_t kDropReasons = 9;
std::string_view description_of(DropReason reason);

enum class AnswerTokens {
  kSingle,  // an answer must be one token
  kFirst,   // of longer ones the first token counts, where it tells right from wrong
};

struct FitOptions {
  AnswerTokens answer_tokens = AnswerTokens::kSingle;
  // Every wrong answer is needed (years, say); otherwise those that do not fit are left out as long
  // as one remains.
  bool every_wrong_answer = false;
  // Answers are the tokens of their own text, whatever the tokenizer makes of prompt and answer
  // together: a model that reads " 17" chooses among "00" to "99" even where " 1776" is one token.
  bool answers_apart = false;
  bool end_of_text_first = false;  // put the end-of-text token before both prompts
  std::int64_t vocabulary = 0;     // of the model; 0: any
  std::int64_t context = 0;        // likewise
};

struct Fit {
  std::optional<TaskPrompt> prompt;
  DropReason reason = DropReason::kEmpty;  // when there is no prompt
  std::size_t wrong_left_out = 0;
  bool shortened = false;  // an answer is the first of several tokens
};

// What each token of the clean prompt is to the task: a token takes the role of every span it has
// bytes of (" 1732" may be "XX/YY"), the second and further ones of a span are numbered ("S1.2"),
// and the last, where the answer is read, is END. The first, which many heads rest on, is START
// where it is nothing else. Where tokens do not spell the text there are no roles but these.
std::vector<std::string> roles_of(const PromptText& text, std::span<const TokenId> tokens,
                                  const Tokenizer& tokenizer);

// Throws Error for text that is not UTF-8, and when an end-of-text token is asked for that the
// tokenizer does not have.
Fit fit(const PromptText& text, const Tokenizer& tokenizer, const FitOptions& options);

// The prompts of a task, and what became of the others.
struct TaskPrompts {
  std::string task;
  std::string corruption;
  std::vector<TaskPrompt> prompts;
  std::size_t drawn = 0;
  std::array<std::size_t, kDropReasons> dropped{};
  std::array<std::string, kDropReasons> example{};  // the first clean prompt that was dropped so
  std::size_t wrong_left_out = 0;
  std::size_t shortened = 0;  // prompts with an answer that is the first of several tokens
  bool used_up = false;       // of a text: it has no more passages

  void add(Fit result, const PromptText& text);
};

// Indices of prompts that run together: equally long, at most `most_tokens` tokens (one prompt at
// least), and those with the longest common beginning of clean and corrupt side by side.
std::vector<std::vector<std::size_t>> batches_of(const std::vector<TaskPrompt>& prompts,
                                                 std::int64_t most_tokens);

}  // namespace filigree
