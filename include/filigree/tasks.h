// Prompts with known answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/data.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "filigree/tokenizer.h"

namespace filigree {

class Model;

// -------------------------------------------------------------------------------------------------
// A text that tasks are drawn from, with the places of its words and sentences: any prose will do,
// best such that the model was not trained on.

// Of a longer text the beginning is read: enough for some thousand passages of every kind.
inline constexpr std::size_t kMostTaskTextBytes = std::size_t{16} << 20;

// Longer passages would cost more than they show: attention maps grow with the square.
inline constexpr std::size_t kMostPassageBytes = 320;

struct TextWord {
  std::uint32_t begin = 0, end = 0;  // bytes of the document
  bool begins_sentence = false;
};

struct TextDocument {
  std::string text = {};
  std::vector<TextWord> words = {};  // letters, with apostrophes and hyphens between them

  std::string_view word(std::size_t i) const;
  // What is between word i - 1, or the beginning, and word i.
  std::string_view before(std::size_t i) const;
  // The first word of a passage that begins with the sentence of word `from` and goes on to word
  // `end`; nothing where that is longer than passages may be.
  std::optional<std::size_t> passage_begin(std::size_t from, std::size_t end) const;
};

struct TaskText {
  std::string source = {};  // for messages
  std::vector<TextDocument> documents = {};

  std::size_t word_count() const;
};

TextDocument scan_document(std::string text);

// Documents are separated by <|endoftext|>; plain, .xz or .zst. Throws Error when the file cannot
// be read or is not UTF-8.
TaskText read_task_text(const std::filesystem::path& file);

// How often each word occurs, "The" apart from "the". The views are into the text.
using WordFrequencies = std::unordered_map<std::string_view, std::uint32_t>;
WordFrequencies count_words(const TaskText& text);

bool is_capital(char letter);
// With ASCII capitals made small.
std::string in_small_letters(std::string_view word);

// -------------------------------------------------------------------------------------------------
// A task's prompts as a model sees them: pairs of token sequences with right and wrong next tokens.
//
// Patching compares a clean and a corrupt run position by position and reads one next token, so a
// pair is of use only if both prompts have equally many tokens and the answers are single tokens
// that the tokenizer would cut off exactly where the prompt ends. fit() checks this and says why a
// pair does not fit; nothing is padded or cut to make it.

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

  // Whose prediction is read; -1: the last one's. Others only where attention is bidirectional: of a
  // causal model the prompt ends there.
  std::int64_t position = -1;

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
  std::int64_t outputs = 0;        // logits of the model, which answers are among; 0: any
  bool bidirectional = false;      // whether a position's prediction depends on what follows it
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

// The same of a prompt that is given by ids, its `position` too: of a causal model what follows that
// is left out.
Fit fit_ids(TaskPrompt prompt, const Tokenizer& tokenizer, const FitOptions& options);

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

// Indices of prompts that run together: equally long, read at the same position, at most `most_tokens` tokens (one prompt at
// least), and those with the longest common beginning of clean and corrupt side by side.
std::vector<std::vector<std::size_t>> batches_of(const std::vector<TaskPrompt>& prompts,
                                                 std::int64_t most_tokens);

// -------------------------------------------------------------------------------------------------
// What a task measures at the last position of a prompt. In all of them more is better.
//
//   logit difference        mean logit of the answers - mean logit of the wrong answers
//   probability difference  probability of the answers - probability of the wrong answers
//   kl                      -KL(clean prediction || prediction), 0 for the clean run itself
//   accuracy                1 when the likeliest of the candidates is an answer, else 0

enum class Metric { kLogitDifference, kProbabilityDifference, kKl, kAccuracy };

template <>
inline constexpr auto kNames<Metric> =
    std::to_array<Named<Metric>>({{Metric::kLogitDifference, "logit-diff"},
                                  {Metric::kProbabilityDifference, "prob-diff"},
                                  {Metric::kKl, "kl"},
                                  {Metric::kAccuracy, "accuracy"}});

using PromptRefs = std::vector<const TaskPrompt*>;

// One number a row: logits [rows, V] or [rows, 1, V], and prompts[row % prompts.size()] is the
// row's, so that a batch may hold the same prompts many times. kKl compares with clean_logits (a
// row a prompt), which the others do not read. Logits may lie on the GPU, both there then: only the
// numbers that the metric is made of are copied. Throws Error for shapes that do not fit.
std::vector<double> measure(Metric metric, const Tensor& logits, const PromptRefs& prompts,
                            const Tensor& clean_logits = {});

// The sum over the rows, to be differentiated; a row a prompt. Throws Error for kAccuracy, which
// has no slope.
Variable metric_sum(Metric metric, const Variable& logits, const PromptRefs& prompts,
                    const Tensor& clean_logits = {});

struct Estimate {
  double mean = 0;
  std::optional<double> error = {};  // standard error of the mean; a single value has none
};
Estimate estimate(std::span<const double> values);

// -------------------------------------------------------------------------------------------------
// Whether a model can do a task at all: circuits of a behaviour that is not there mean nothing.

// What the model makes of each prompt, in the order of the prompts.
struct TaskScores {
  std::vector<double> clean, corrupt;                    // the metric
  std::vector<double> clean_accuracy, corrupt_accuracy;  // 0 or 1
};

// Called with the number of prompts done; may throw to stop.
using TaskProgress = std::function<void(std::size_t done)>;

TaskScores score(const Model& model, const std::vector<TaskPrompt>& prompts, Metric metric,
                 const TaskProgress& progress = {});

struct TaskCheck {
  Estimate clean, corrupt, difference;  // of the metric; difference is clean - corrupt, by prompts
  double clean_accuracy = 0, corrupt_accuracy = 0;
  double chance = 0;   // accuracy of guessing among each prompt's candidates
  double p_value = 1;  // probability that guessing is right at least so often
  double least_p = 1;  // the p of a model that is always right
  bool better_than_chance = false;
  // Whether so many prompts can show at all that a model is better than chance.
  bool enough_prompts = false;
  // Whether the corruption lowers the metric by more than twice its standard error: what patching
  // measures as a share of.
  bool corruption_matters = false;
};

inline constexpr double kChanceLevel = 0.01;  // of p_value

TaskCheck check_task(const TaskScores& scores, const std::vector<TaskPrompt>& prompts);

// Probability that independent events of these probabilities happen at least `count` times.
double at_least(std::size_t count, const std::vector<double>& probabilities);

// ids [prompts, T] of the prompts, which are equally long.
Tensor prompt_ids(const PromptRefs& prompts, bool corrupt);

// -------------------------------------------------------------------------------------------------
// The built-in tasks: behaviours that are known to need few heads, each with one or more ways to
// corrupt a prompt. The sentences are those of the synthetic corpus (filigree/data.h), so that
// models trained on it know them; GPT-2 does too. Some tasks need no sentences: their prompts are
// passages of any text (text_tasks.h).

// What prompts are made of; the text is that of tasks that are drawn from one.
struct TaskMaterial {
  Tokenizer tokenizer;
  std::shared_ptr<const TaskText> text = nullptr;
};

// Nothing when there are no more.
using DrawPair = std::function<std::optional<TaskPair>(Random&)>;

struct TaskCorruption {
  std::string_view name;
  std::string_view description;
  std::function<DrawPair(const TaskMaterial&)> prepare;
};

struct TaskDefinition {
  std::string_view name;
  std::string_view corpus_task;  // whose combinations are held out; "" when none
  std::string_view description;
  Metric metric = Metric::kLogitDifference;
  bool fixed_answers = false;                 // the same candidates for all prompts: see FitOptions
  bool from_text = false;                     // passages of TaskOptions::text, not sentences
  bool first_token = false;                   // of answers of several tokens the first counts
  std::vector<TaskCorruption> corruptions{};  // the first is the default
};

const std::vector<TaskDefinition>& task_definitions();
// By name, or by the name of the corpus's task. Throws Error that lists the nearest.
const TaskDefinition& task_definition(std::string_view name);
// "": the default. Throws Error that lists what there is.
const TaskCorruption& corruption_of(const TaskDefinition& task, std::string_view name);

struct TaskOptions {
  std::size_t prompts = 64;
  std::uint64_t seed = 0;
  DataSplit split = DataSplit::kHeldOut;  // what a model trained on the corpus has not seen
  FitOptions fit = {};                    // some of its settings are the task's own
  std::shared_ptr<const TaskText> text = nullptr;  // for tasks that are drawn from one
};

// Draws pairs until `prompts` different ones fit the tokenizer, or until it is clear that not so
// many will. The same seed gives the same prompts for the same tokenizer and text. Throws Error
// when none fits, saying why, and when a text is needed that is not there.
TaskPrompts make_task(const TaskDefinition& task, const TaskCorruption& corruption,
                      const Tokenizer& tokenizer, const TaskOptions& options);

// Throws Error with the reasons unless there is a prompt.
void require_prompts(const TaskPrompts& prompts);

}  // namespace filigree
