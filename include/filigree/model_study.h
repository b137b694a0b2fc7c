// Models and data as files: told about, converted, verified, prepared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/data.h"
#include "filigree/evaluation_study.h"
#include "filigree/knobs.h"
#include "filigree/model.h"
#include "filigree/study.h"
#include "filigree/tokenizer.h"
#include "filigree/training_study.h"
#include "filigree/weights.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// Memory that a model needs, from its configuration alone. All arithmetic is in f32, so a number
// takes 4 bytes whatever the type it is stored in.

struct MemoryEstimate {
  std::int64_t batch = 0, length = 0;  // what it is for
  std::uint64_t weights = 0;
  std::uint64_t forward = 0;               // activations of a forward pass, nothing kept
  std::uint64_t attention_maps = 0;        // all of them, when kept
  std::uint64_t training_activations = 0;  // kept for the backward pass, and its first gradients
  std::uint64_t cache = 0;                 // keys and values of `length` positions
};

// For inputs of [batch, length].
MemoryEstimate estimate_memory(const ModelConfig& config, std::int64_t batch, std::int64_t length);

Json to_json(const MemoryEstimate& estimate);

// -------------------------------------------------------------------------------------------------
// What can be said about a model folder from its headers alone: no weights are read, so this is
// instant for a model of any size.

// Parameters of the same role, of all blocks together.
struct ModelPart {
  std::string name;          // as the checkpoint calls it: "wte", "attn", "mlp"
  std::int64_t repeats = 1;  // blocks that have it
  std::int64_t parameters = 0;
};

struct SpecialToken {
  std::string content;
  TokenId id = 0;
};

struct TokenizerSummary {
  bool present = false;
  std::string problem;  // why it could not be read
  std::string kind;
  std::int64_t tokens = 0;
  std::vector<SpecialToken> special;
};

struct SummaryRequest {
  std::string model = {};  // folder or name
  // Of the texts whose memory is estimated.
  std::int64_t batch = 1;
  std::int64_t length = 0;  // 0: the model's context
};

// A run that the model could be trained in, with its memory on one kind of device.
struct TrainingVariant {
  std::string command;  // with its options: "sparsify --recompute"
  Placement placement;
  std::uint64_t there = 0;  // memory of the device; 0: unknown
  TrainingMemory memory;

  bool fits() const { return there == 0 || memory.total <= there; }
};

struct ModelSummary {
  std::string folder;
  std::string adapter;  // on the model of that folder; empty: none
  ModelConfig config;
  std::vector<ModelPart> parts;
  std::int64_t parameters = 0;
  std::string stored_as;  // "f32", or several types, the one with most bytes first
  std::vector<std::filesystem::path> files;
  std::uint64_t file_bytes = 0;
  TokenizerSummary tokenizer;
  MemoryEstimate memory;
  std::vector<TrainingVariant> training;  // on each kind of device of this machine
};

// Throws Error when the configuration or the weights' headers are such that the model cannot be
// loaded.
ModelSummary run(const SummaryRequest& request, Models models, const Context& context);

// With the heads that ever open, where they were looked for (find_living_heads): null otherwise.
Json to_json(const ModelSummary& summary, const std::optional<HeadsAlive>& alive = {});

// Whether reading and running the model for that takes moments: a gated one of at most 200 million
// parameters with a tokenizer.
bool living_heads_are_cheap(const ModelSummary& summary);

// The tokenizer of a folder, whatever else is there.
TokenizerSummary summarize_tokenizer(const std::filesystem::path& folder);

// -------------------------------------------------------------------------------------------------
// A model folder written anew, with one file of weights in the type that is asked for, adapters
// merged, mixed with another model, its gates more or less open, and its tokenizer beside it.

// What a state dict of TransformerLens's names does not tell, in its words; "": as it is taken to be
// (ModelConfig::assumed).
struct LensSettings {
  std::string attention_dir = {};              // causal, bidirectional
  std::string act_fn = {};                     // relu, gelu, gelu_new, silu, solu, solu_ln
  std::string normalization_type = {};         // LN, LNPre, RMS, RMSPre, none
  std::string positional_embedding_type = {};  // standard, rotary, shortformer, none
  bool unscaled = false;                       // use_attn_scale false
  bool parallel = false;                       // parallel_attn_mlp
};

struct ConversionRequest {
  std::string model = {};  // folder or name
  std::filesystem::path out = {};
  MatrixType dtype = MatrixType::kF32;  // of the weights
  // Of weights as they were, and as `dtype` has them.
  NotFinite not_finite = NotFinite::kRefuse;
  float raise_gates = 0.0f;  // added to the bias of every gate: above 0 opens more edges
  std::string config = {};   // config.json, or a model that has one; empty: that of `model`
  LensSettings lens = {};
  std::optional<float> gate_bias = {};  // puts a gate of this bias on every head
  std::string mix_with = {};            // folder or name of another model of the same shape
  double mix_share = 0.5;               // of that model in the average
};

Knobs knobs_of(ConversionRequest& request);

struct Conversion {
  ConversionRequest request;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;  // of the file of weights
  bool tokenizer = false;   // one was there to take along
};

// Throws Error when `out` holds a model already, when gates are to be raised and there are none,
// when gates are to be put on and there are some, for a model to mix with of another shape or
// tokenizer, and for weights that are not finite or too large for the type.
Conversion run(const ConversionRequest& request, Models models, const Context& context);

Json to_json(const Conversion& conversion);

// The parts that others write models with, too. Throws Error when `out` holds a model.
void refuse_model_in(const std::filesystem::path& out);
// The model as a folder, with the tokenizer of `from`, if there is one. Its size in bytes.
std::uint64_t save_converted(const Model& model, const std::filesystem::path& from,
                             const std::filesystem::path& out, MatrixType dtype,
                             NotFinite not_finite = NotFinite::kRefuse);

// -------------------------------------------------------------------------------------------------
// Whether the files of folders are still what was written: models, transcoders, runs with their
// checkpoints and controls, token shards.

struct VerificationRequest {
  std::vector<std::string> folders = {};  // or names of models and transcoders
  // First writes the checksums of a model that came without, or was changed on purpose.
  bool write = false;
};

struct VerifiedFolder {
  std::string folder;
  bool checksums = false;          // there are some
  std::vector<CheckedFile> files;  // that they name
  std::string problem;             // that is not one file's

  bool damaged() const;
};

struct Verification {
  std::vector<VerifiedFolder> folders;  // those asked for, and those inside them

  bool damaged() const;
  bool checked_any() const;
};

Verification run(const VerificationRequest& request, Models models, const Context& context);

Json to_json(const Verification& verification);

// -------------------------------------------------------------------------------------------------
// A model of the Hugging Face hub into the cache that other programs share. The one study, and with it
// the one command, that asks the network for anything.

struct FetchRequest {
  std::string model;     // ORG/NAME[@REVISION][:FILE.gguf]
  std::string endpoint;  // empty: HF_ENDPOINT, else https://huggingface.co
  std::string token;     // empty: HF_TOKEN; sent to the endpoint's host and to no other
  std::filesystem::path cache;  // empty: that of this machine
};

struct FetchedModelFile {
  std::string file;
  std::uint64_t bytes = 0;
  bool downloaded = false;  // else it was there
  std::string checksum;     // what was compared: sha256 or git; empty for what was there
};

struct FetchedModel {
  std::string model;  // as other commands take it
  std::string repository, revision, commit;
  std::filesystem::path folder;
  std::vector<FetchedModelFile> files;
  std::uint64_t bytes = 0;             // of all files
  std::uint64_t downloaded_bytes = 0;  // that came over the network now
};

// Throws Error for what cannot be had, and where HF_HUB_OFFLINE is set.
FetchedModel run(const FetchRequest& request, Models models, const Context& context);

Json to_json(const FetchedModel& fetched);
std::string text_of(const FetchedModel& fetched);

// -------------------------------------------------------------------------------------------------
// The synthetic task corpus as a file, and what its tasks are.

struct CorpusRequest {
  std::vector<TaskShare> tasks{};  // empty: all, equally
  DataSplit split = DataSplit::kTrain;
  // Where it ends; one of them.
  std::uint64_t bytes = 0;
  std::uint64_t documents = 0;
  std::filesystem::path out{};  // empty: given to `sink` instead
};

struct WrittenCorpus {
  std::filesystem::path out;
  DataSplit split = DataSplit::kTrain;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  double seconds = 0.0;

  double megabytes_per_second() const;
};

WrittenCorpus run(const CorpusRequest& request, Models models, const Context& context,
                           const std::function<void(std::string_view)>& sink = {});

Json to_json(const WrittenCorpus& written);

// A task with an example.
struct ShownTask {
  const CorpusTask* task = nullptr;
  TaskExample example;
};

// All of them; the seed chooses the examples.
std::vector<ShownTask> show_corpus_tasks(std::uint64_t seed);

Json to_json(const std::vector<ShownTask>& tasks);

// -------------------------------------------------------------------------------------------------
// Text files of any size to a folder of token shards for training.

struct PreparationRequest {
  std::vector<std::filesystem::path> texts = {};  // UTF-8, plain, .xz or .zst
  // The split "held-out": these texts, or a share of the documents of `texts`, 0.01 unless given.
  std::vector<std::filesystem::path> held_out_texts = {};
  std::optional<double> held_out_share = {};
  std::filesystem::path out = {};
  // Either the tokenizer of a folder or of a model by name, or one of so many tokens that is
  // trained on the texts.
  std::string tokenizer = {};
  std::int64_t vocabulary = 0;
  std::int64_t max_digits = 0;  // in a token of a trained tokenizer; 0: any number
  std::int64_t shard_tokens = std::int64_t{1} << 24;
  bool replace_invalid = false;  // reads invalid UTF-8 as U+FFFD
  bool force = false;            // replaces shards that are there
};

Knobs knobs_of(PreparationRequest& request);

struct Preparation {
  std::filesystem::path out = {};
  ShardIndex index;
  double seconds = 0.0;  // of the encoding

  double megabytes_per_second() const;  // of text
};

Preparation run(const PreparationRequest& request, Models models, const Context& context);

Json to_json(const Preparation& preparation);

// -------------------------------------------------------------------------------------------------
// A byte-level BPE tokenizer from text files.

struct TokenizerTrainingRequest {
  std::vector<std::filesystem::path> texts = {};  // UTF-8
  std::int64_t vocabulary = 8192;
  std::int64_t min_frequency = 2;  // pairs that occur less often are not joined
  std::int64_t max_digits = 0;     // in a token; 0: any number
  std::filesystem::path out = {};
  bool force = false;  // replaces a tokenizer that is there
};

struct TrainedTokenizer {
  std::filesystem::path out = {};
  std::size_t vocabulary = 0;  // smaller than asked for when the texts gave no more
  std::uint64_t bytes = 0;     // of text
  double seconds = 0.0;
};

// Throws Error when the folder has a tokenizer already, unless forced.
TrainedTokenizer run(const TokenizerTrainingRequest& request, Models models,
                     const Context& context);

Json to_json(const TrainedTokenizer& trained);

// -------------------------------------------------------------------------------------------------
// Tokens with their places in the text that they stand for.

struct PlacedToken {
  TokenId id = 0;
  std::string text;                // as tables show it
  bool special = false;            // not made of the characters that it is shown as
  std::size_t begin = 0, end = 0;  // bytes
};

// One after the other, since a text may have more tokens than anybody wants in memory.
void place_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                  const std::function<void(const PlacedToken&)>& take);

// Bytes of the text that the tokens stand for.
std::size_t token_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids);

// "15496 995", "[15496, 995]": whole numbers with spaces, commas, brackets and line breaks between
// them. Throws Error.
std::vector<TokenId> parse_token_ids(std::string_view text);

// [{"id", "token", "begin", "end"}, ...].
Json tokens_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids);

}  // namespace filigree::study
