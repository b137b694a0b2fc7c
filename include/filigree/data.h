// Tokens to train on and to measure with.
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
#include <vector>

#include "filigree/enum_names.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "filigree/tensor.h"
#include "filigree/tokenizer.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// What a model is trained on, and what is kept from it to measure it by; of texts, of token shards
// and of the sentences of tasks.

enum class DataSplit { kTrain, kHeldOut };
template <>
inline constexpr auto kNames<DataSplit> = std::to_array<Named<DataSplit>>(
    {{DataSplit::kTrain, "train"}, {DataSplit::kHeldOut, "held-out"}});

// -------------------------------------------------------------------------------------------------
// index.json of a folder of token shards: which tokenizer made them, and the shards of each split
// with their sizes and checksums. docs/file_formats.md describes the file. It is written last, so a
// folder that has one is whole; it is untrusted when read.

inline constexpr std::string_view kShardIndexFile = "index.json";

struct ShardEntry {
  std::string file;  // name within the folder
  std::uint64_t tokens = 0;
  std::uint64_t checksum = 0;  // of the tokens' bytes
};

struct SplitEntry {
  std::string name;  // "train", "held-out"
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  std::vector<ShardEntry> shards;
};

// A file of the tokenizer that made the shards, beside them.
struct TokenizerFileEntry {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

struct ShardIndex {
  std::uint64_t vocabulary = 0;  // ids are below it
  TokenId end_of_text = 0;
  std::uint64_t tokenizer = 0;                      // tokenizer_fingerprint()
  std::optional<std::uint64_t> tokenizer_rules;     // its rules_fingerprint(); older shards lack it
  std::vector<TokenizerFileEntry> tokenizer_files;  // and these
  std::vector<SplitEntry> splits;

  // 2 where ids fit, else 4.
  int token_bytes() const { return vocabulary <= 65536 ? 2 : 4; }

  // Throws Error that lists the splits there are.
  const SplitEntry& split(std::string_view name) const;
};

std::string write_shard_index(const ShardIndex& index);

// Throws Error for anything that is not a well-formed index; `name` begins the messages.
ShardIndex parse_shard_index(std::string_view text, const std::string& name);

// A number that tells vocabularies apart: the checksum of every id's name and of which ids are
// special.
std::uint64_t tokenizer_fingerprint(const Tokenizer& tokenizer);

// Whether one tokenizer made both, as far as the indices tell.
bool same_tokenizer(const ShardIndex& one, const ShardIndex& other);
// Whether the tokenizer makes the shards' tokens of their texts, as far as the index tells.
bool made_by(const ShardIndex& index, const Tokenizer& tokenizer);

// -------------------------------------------------------------------------------------------------
// A folder of token shards: text that was turned into tokens once, to be trained on many times.
//
// The writer keeps one shard of each split in memory and writes the index last, so that an
// interrupted run leaves a folder that does not open rather than one that lacks text. The reader
// maps the shards: a split is one long sequence of tokens that needs no memory of its own.

class ShardFile;

class TokenShardsWriter {
 public:
  struct Options {
    std::uint64_t vocabulary = 0;
    TokenId end_of_text = 0;
    std::uint64_t tokenizer = 0;                          // tokenizer_fingerprint()
    std::optional<std::uint64_t> tokenizer_rules = {};    // Tokenizer::rules_fingerprint()
    std::uint64_t shard_tokens = std::uint64_t{1} << 24;  // the last shard of a split may have less
    std::vector<std::string> splits = {"train", "held-out"};
  };

  // Makes the folder when it is missing, and removes the index and the shards of an earlier run.
  // Throws Error when that fails or the options make no sense.
  TokenShardsWriter(std::filesystem::path folder, Options options);

  // Appends to a split; `split` counts in the order of the options. Throws Error for an id outside
  // the vocabulary and when a shard cannot be written.
  void add_tokens(std::size_t split, std::span<const TokenId> ids);
  // What the index says about where the tokens came from.
  void add_documents(std::size_t split, std::uint64_t documents, std::uint64_t text_bytes);

  // The tokenizer's files, which are in the folder by now: the index gets their checksums.
  void add_tokenizer_files(const std::vector<std::string>& names);

  // Writes what is left and the index. At most once; without it the folder does not open.
  ShardIndex finish();

 private:
  void flush(std::size_t split);

  std::filesystem::path folder_;
  Options options_;
  ShardIndex index_;
  std::vector<std::vector<std::byte>> pending_;  // of each split, the shard being filled
};

enum class ShardCheck {
  kSizes,     // headers, counts and sizes
  kContents,  // and every checksum and id, which reads everything once, and the tokenizer beside
              // the shards, which must be the one that made them
};

// One split as one sequence. Copies share the maps; any number of threads may read.
class TokenSplit {
 public:
  std::string_view name() const { return entry_->name; }
  std::uint64_t tokens() const { return entry_->tokens; }
  const SplitEntry& entry() const { return *entry_; }

  // Tokens [begin, begin + out.size()) across shard borders. Throws Error when they are not all
  // there.
  void read(std::uint64_t begin, std::span<TokenId> out) const;

  // The same for equal tokens: a run that resumes checks that its data is what it was.
  std::uint64_t fingerprint() const;

 private:
  friend class TokenShards;
  TokenSplit() = default;

  std::shared_ptr<const SplitEntry> entry_;
  std::shared_ptr<const std::vector<ShardFile>> shards_;
  std::vector<std::uint64_t> ends_;  // of each shard in the sequence
};

class TokenShards {
 public:
  // Throws Error naming the file and what is wrong with it.
  static TokenShards open(const std::filesystem::path& folder,
                          ShardCheck check = ShardCheck::kContents);

  const ShardIndex& index() const { return index_; }
  bool has_split(std::string_view name) const;
  // Throws Error that lists the splits there are.
  const TokenSplit& split(std::string_view name) const;

 private:
  TokenShards() = default;

  ShardIndex index_;
  std::vector<TokenSplit> splits_;
};

// -------------------------------------------------------------------------------------------------
// Batches for training and for evaluation from a split of token shards.
//
// Training: every epoch cuts the split into windows of T inputs whose targets are the tokens one
// place on, beginning at an offset that the epoch draws, and gives the windows out in an order that
// the epoch shuffles. Both are functions of (seed, epoch) alone, so the whole state of a loader is
// where it is: an epoch and the number of windows taken from it. Batches run across the end of an
// epoch: no window is dropped, and a split smaller than a batch works too.
//
// Several processes share a batch by rows: rank r takes rows [r B, (r + 1) B) of the world_size * B
// that one process would have taken.

struct TokenBatch {
  Tensor ids;      // [B, T] i32
  Tensor targets;  // [B, T] i32, the token after each
};

// Where a loader stands; a checkpoint stores the two numbers.
struct LoaderState {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // windows of the epoch that were taken, by all ranks together

  bool operator==(const LoaderState&) const = default;
};

struct LoaderOptions {
  std::int64_t batch = 1;   // B, rows of this rank
  std::int64_t length = 1;  // T
  std::uint64_t seed = 0;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
};

class ShardLoader {
 public:
  // Continues at `state`. Throws Error when the split has no window of this length, the options
  // make no sense, or the state cannot be one of this split and length.
  ShardLoader(TokenSplit split, LoaderOptions options, LoaderState state = {});

  // The same batch for every thread count.
  TokenBatch next();

  const LoaderState& state() const { return state_; }

  // Windows of an epoch: (tokens - 1 - offset) / T; at most one apart between epochs.
  std::uint64_t windows(std::uint64_t epoch) const;

 private:
  std::uint64_t offset(std::uint64_t epoch) const;

  TokenSplit split_;
  LoaderOptions options_;
  LoaderState state_;
};

// The split from its beginning to its end: every token but the first is a target exactly once.
class SequentialLoader {
 public:
  // Begins with token `first`. Throws Error when there are fewer than two tokens from there on or
  // the sizes are below 1.
  SequentialLoader(TokenSplit split, std::int64_t batch, std::int64_t length,
                   std::int64_t first = 0);

  // False at the end. The last rows may come in a batch of fewer rows, and a rest shorter than T as
  // a batch of one row of its own length.
  bool next(TokenBatch& batch);

  std::uint64_t targets() const { return split_.tokens() - 1 - first_; }
  std::uint64_t targets_done() const { return position_ - first_; }

 private:
  TokenSplit split_;
  std::uint64_t batch_;
  std::uint64_t length_;
  std::uint64_t first_;
  std::uint64_t position_;  // input of the next window's first place
};

// -------------------------------------------------------------------------------------------------
// A task of the synthetic corpus: short texts in which one word follows from the others by one
// mechanism (copying, comparing, looking up, counting brackets, ...).
//
// A task draws an example from all it can make and names the combination of its slots that makes it
// what it is: the two summands, the two names, the country and the sentence. Combinations are held
// out by a hash of that name, so a held-out example asks for something that no training example
// shows, and no held-out text ever occurs in training.
//
// To add a task: one file with its draw function, a declaration in tasks.h and a line in tasks.cpp.

// What a stretch of a prompt is to its task: "IO", "S1".
struct RoleSpan {
  std::string role = {};
  std::size_t begin = 0, end = 0;  // bytes of the prompt
};

struct TaskExample {
  std::string prompt;
  std::string answer;                   // with the space before it, where there is one
  std::string text;                     // prompt + answer + whatever follows
  std::vector<std::string> also_right;  // other answers that would be right
  std::vector<std::string> wrong;       // plausible answers that are wrong; never empty
  std::string combination;
  std::vector<RoleSpan> roles = {};  // of the prompt, from its beginning; of pairs only
};

struct CorpusTask {
  std::string_view name;
  std::string_view description;
  TaskExample (*draw)(Random& random);
};

// One combination in 16 is held out.
bool is_held_out(std::string_view task, std::string_view combination);

// Draws until the example belongs to the split.
TaskExample make_example(const CorpusTask& task, Random& random, DataSplit split);

// -------------------------------------------------------------------------------------------------
// Pairs of prompts that differ only in what decides the answer, for patching and circuits.
//
// The clean prompt is an example of the task, in the sentences of the corpus. The corrupt
// one is the same sentence with another name, word or number in it; it asks for another answer or
// for none. Whether the two have equally many tokens is for the reader of the pair to check.

struct TaskPair {
  TaskExample clean;    // `wrong` has the answer of the corrupt prompt, where it has one
  std::string corrupt;  // a prompt
};

namespace corpus {

enum class NameOrder { kEither, kAbba, kBaba };
enum class GiverChange {
  kThirdPerson,  // somebody who was not named before gives: the receiver is open
  kExchanged,    // the other one of the two gives: the answer is the other name
  kOtherNames,   // three people nobody named before
};
TaskPair pair_indirect_object(Random& random, NameOrder order, GiverChange change);

enum class YearChange {
  kFirstYear,  // year 01, after which nearly every year is right
  kOtherYear,  // another year
};
TaskPair pair_greater_than(Random& random, YearChange change);

TaskPair pair_pronoun(Random& random);    // a name of the other gender
TaskPair pair_agreement(Random& random);  // the subject in the other number
TaskPair pair_antonym(Random& random);    // another word
TaskPair pair_capital(Random& random);    // another country

enum class CopyChange {
  kOneWord,   // another word where the answer stands the first time
  kAllWords,  // other words the first time: there is nothing to copy
};
TaskPair pair_copy(Random& random, CopyChange change);

enum class ArgumentChange {
  kOneArgument,   // another name where the signature has the answer
  kAllArguments,  // a signature of other names
};
TaskPair pair_docstring(Random& random, ArgumentChange change);

TaskPair pair_addition(Random& random);  // another second summand

}  // namespace corpus

// -------------------------------------------------------------------------------------------------
// The synthetic task corpus: documents of a few examples each.
//
// Document number i of a seed and split is a function of these alone, so any number of threads can
// write the corpus and any part of it can be made again. The training and the held-out split share
// no combination.

struct TaskShare {
  const CorpusTask* task = nullptr;
  double weight = 1;
};

struct CorpusOptions {
  std::vector<TaskShare> tasks{};  // empty: all, equally
  std::uint64_t seed = 0;
  DataSplit split = DataSplit::kTrain;
};

class Corpus {
 public:
  // Throws Error when a weight is negative or not a number, or all are 0.
  explicit Corpus(CorpusOptions options);

  // Between one and six examples, half of the time of one task. Ends without a line break.
  std::string document(std::uint64_t index) const;

  struct Written {
    std::uint64_t documents = 0;
    std::uint64_t bytes = 0;
  };

  // Gives out documents 0, 1, ..., each followed by a line <|endoftext|>, in blocks of text, until
  // there are `documents` or at least `bytes` bytes, whichever comes first (0: no such limit; one
  // must be given). `sink` may throw to stop.
  Written write(std::uint64_t documents, std::uint64_t bytes,
                const std::function<void(std::string_view)>& sink) const;

 private:
  const CorpusTask& draw_task(Random& random) const;

  CorpusOptions options_;
  double total_weight_ = 0;
};

}  // namespace filigree
