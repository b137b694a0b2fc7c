#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "filigree/error.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

// The tokens that follow those of `prompt` when `answer` is written behind it; empty when the
// tokenizer cuts the two differently together than apart.
std::vector<TokenId> continuation(const Tokenizer& tokenizer, const std::string& prompt,
                                  const std::vector<TokenId>& prompt_ids,
                                  const std::string& answer) {
  const std::vector<TokenId> all = tokenizer.encode(prompt + answer);
  if (all.size() <= prompt_ids.size() ||
      !std::equal(prompt_ids.begin(), prompt_ids.end(), all.begin()))
    return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt_ids.size()), all.end()};
}

struct AnswerToken {
  std::optional<TokenId> id;
  DropReason reason = DropReason::kJoined;
  bool shortened = false;  // more tokens follow
};

AnswerToken answer_token(const Tokenizer& tokenizer, const TaskPrompt& prompt,
                         const std::string& answer, const FitOptions& options) {
  if (answer.empty()) return {std::nullopt, DropReason::kEmpty, false};
  const std::vector<TokenId> ids =
      options.answers_apart ? tokenizer.encode(answer)
                            : continuation(tokenizer, prompt.text.clean, prompt.clean, answer);
  if (ids.empty()) return {std::nullopt, DropReason::kJoined, false};
  if (ids.size() > 1 && options.answer_tokens == AnswerTokens::kSingle)
    return {std::nullopt, DropReason::kSeveralTokens, false};
  return {ids[0], DropReason::kJoined, ids.size() > 1};
}

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool beyond(const std::vector<TokenId>& ids, std::int64_t vocabulary) {
  return vocabulary > 0 &&
         std::any_of(ids.begin(), ids.end(), [&](TokenId id) { return id >= vocabulary; });
}

bool outside(const TaskPrompt& prompt, const FitOptions& options) {
  const std::int64_t outputs = options.outputs > 0 ? options.outputs : options.vocabulary;
  return beyond(prompt.clean, options.vocabulary) || beyond(prompt.corrupt, options.vocabulary) ||
         beyond(prompt.answers, outputs) || beyond(prompt.wrong, outputs);
}

Fit dropped(DropReason reason) {
  Fit none;
  none.reason = reason;
  return none;
}

}  // namespace

std::int64_t TaskPrompt::first_difference() const {
  const auto [first, second] =
      std::mismatch(clean.begin(), clean.end(), corrupt.begin(), corrupt.end());
  return first - clean.begin();
}

std::string_view description_of(DropReason reason) {
  switch (reason) {
    case DropReason::kEmpty: return "a prompt or answer is empty";
    case DropReason::kSame: return "clean and corrupt are the same tokens";
    case DropReason::kDifferentLengths: return "clean and corrupt have different numbers of tokens";
    case DropReason::kTooLong: return "the prompt is longer than the model's context";
    case DropReason::kJoined: return "the tokenizer joins prompt and answer";
    case DropReason::kSeveralTokens: return "an answer is more than one token";
    case DropReason::kSharedToken: return "right and wrong answers begin with the same token";
    case DropReason::kOutsideVocabulary: return "a token is outside the model's vocabulary";
    case DropReason::kRepeated: return "the same prompt is there before: it counts once";
  }
  return "unknown";
}

std::vector<std::string> roles_of(const PromptText& text, std::span<const TokenId> tokens,
                                  const Tokenizer& tokenizer) {
  std::vector<std::string> roles(tokens.size());
  std::vector<std::size_t> ends;
  std::string spelled;
  for (const TokenId id : tokens) {
    spelled += tokenizer.token_bytes(id);
    ends.push_back(spelled.size());
  }
  if (spelled == text.clean)
    for (const RoleSpan& span : text.roles) {
      int number = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::size_t begin = i == 0 ? 0 : ends[i - 1];
        if (begin >= span.end || ends[i] <= span.begin) continue;
        if (!roles[i].empty()) roles[i] += '/';
        roles[i] += ++number == 1 ? span.role : fmt::format("{}.{}", span.role, number);
      }
    }
  if (!roles.empty()) {
    if (roles.front().empty()) roles.front() = "START";
    roles.back() = "END";
  }
  return roles;
}

Fit fit(const PromptText& text, const Tokenizer& tokenizer, const FitOptions& options) {
  if (text.clean.empty() || text.corrupt.empty() || text.answers.empty() || text.wrong.empty())
    return dropped(DropReason::kEmpty);
  TaskPrompt prompt;
  prompt.text = text;
  prompt.clean = tokenizer.encode(text.clean);
  prompt.corrupt = tokenizer.encode(text.corrupt);
  if (prompt.clean.size() != prompt.corrupt.size()) return dropped(DropReason::kDifferentLengths);
  if (prompt.clean == prompt.corrupt) return dropped(DropReason::kSame);

  Fit result;
  for (const std::string& answer : text.answers) {
    const AnswerToken token = answer_token(tokenizer, prompt, answer, options);
    if (!token.id) return dropped(token.reason);
    result.shortened = result.shortened || token.shortened;
    if (!contains(prompt.answers, *token.id)) prompt.answers.push_back(*token.id);
  }
  for (const std::string& answer : text.wrong) {
    AnswerToken token = answer_token(tokenizer, prompt, answer, options);
    if (token.id && contains(prompt.answers, *token.id))
      token = {std::nullopt, DropReason::kSharedToken, false};
    if (!token.id) {
      if (options.every_wrong_answer) return dropped(token.reason);
      result.reason = token.reason;
      ++result.wrong_left_out;
      continue;
    }
    result.shortened = result.shortened || token.shortened;
    if (!contains(prompt.wrong, *token.id)) prompt.wrong.push_back(*token.id);
  }
  if (prompt.wrong.empty()) return dropped(result.reason);

  for (const TokenId id : prompt.clean) prompt.tokens.push_back(tokenizer.token_text(id));
  prompt.roles = roles_of(text, prompt.clean, tokenizer);
  if (options.end_of_text_first) {
    const std::optional<TokenId> first = tokenizer.eos_id();
    require(first.has_value(), "task: the tokenizer has no end-of-text token to begin with");
    prompt.clean.insert(prompt.clean.begin(), *first);
    prompt.corrupt.insert(prompt.corrupt.begin(), *first);
    prompt.tokens.insert(prompt.tokens.begin(), tokenizer.token_text(*first));
    if (prompt.roles.front() == "START") prompt.roles.front().clear();
    prompt.roles.insert(prompt.roles.begin(), "START");
  }
  if (options.context > 0 && prompt.length() > options.context)
    return dropped(DropReason::kTooLong);
  if (outside(prompt, options)) return dropped(DropReason::kOutsideVocabulary);
  result.prompt = std::move(prompt);
  return result;
}

Fit fit_ids(TaskPrompt prompt, const Tokenizer& tokenizer, const FitOptions& options) {
  if (prompt.clean.empty() || prompt.answers.empty() || prompt.wrong.empty())
    return dropped(DropReason::kEmpty);
  if (prompt.clean.size() != prompt.corrupt.size()) return dropped(DropReason::kDifferentLengths);
  const std::int64_t length = prompt.length();
  if (prompt.position >= 0 && !options.bidirectional) {
    prompt.clean.resize(static_cast<std::size_t>(prompt.position + 1));
    prompt.corrupt.resize(prompt.clean.size());
  }
  if (prompt.position == length - 1 || !options.bidirectional) prompt.position = -1;
  if (prompt.clean == prompt.corrupt) return dropped(DropReason::kSame);
  for (const TokenId id : prompt.wrong)
    if (contains(prompt.answers, id)) return dropped(DropReason::kSharedToken);
  if (options.context > 0 && prompt.length() > options.context)
    return dropped(DropReason::kTooLong);
  if (outside(prompt, options)) return dropped(DropReason::kOutsideVocabulary);
  for (const TokenId id : prompt.clean)
    prompt.tokens.push_back(tokenizer.has_token(id) ? tokenizer.token_text(id)
                                                    : fmt::format("<{}>", id));
  prompt.roles.assign(prompt.clean.size(), "");
  prompt.roles.front() = "START";
  const std::int64_t read = prompt.position < 0 ? prompt.length() - 1 : prompt.position;
  prompt.roles[static_cast<std::size_t>(read)] = "END";
  Fit result;
  result.prompt = std::move(prompt);
  return result;
}

void TaskPrompts::add(Fit result, const PromptText& text) {
  ++drawn;
  if (result.prompt) {
    wrong_left_out += result.wrong_left_out;
    if (result.shortened) ++shortened;
    prompts.push_back(std::move(*result.prompt));
    return;
  }
  const auto reason = static_cast<std::size_t>(result.reason);
  if (dropped[reason]++ == 0) example[reason] = text.clean;
}

std::vector<std::vector<std::size_t>> batches_of(const std::vector<TaskPrompt>& prompts,
                                                 std::int64_t most_tokens) {
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (prompts[a].length() != prompts[b].length())
      return prompts[a].length() < prompts[b].length();
    if (prompts[a].position != prompts[b].position)
      return prompts[a].position < prompts[b].position;
    return prompts[a].first_difference() < prompts[b].first_difference();
  });
  std::vector<std::vector<std::size_t>> batches;
  std::int64_t tokens = 0;
  for (const std::size_t i : order) {
    const std::int64_t length = prompts[i].length();
    if (batches.empty() || prompts[batches.back()[0]].length() != length ||
        prompts[batches.back()[0]].position != prompts[i].position ||
        tokens + length > most_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += length;
  }
  return batches;
}

}  // namespace filigree
