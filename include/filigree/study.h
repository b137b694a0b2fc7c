// What every study takes: models, texts, tokens, a context to report to.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/error.h"
#include "filigree/interventions.h"
#include "filigree/model.h"
#include "filigree/ranks.h"
#include "filigree/tokenizer.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// Results as JSON: keys stay in the order in which they were written.

using Json = nlohmann::ordered_json;

// A value that may be absent: null then.
template <typename Optional>
Json json_or_null(const Optional& value) {
  return value ? Json(*value) : Json();
}

// -------------------------------------------------------------------------------------------------
// What a study is given besides its request: the seed, where models compute, the processes that
// share the work, and whoever watches it. Everything has a default, so that `Context()` is a quiet
// run on the CPU. A study never prints: what there is to say goes through here or into its result.

// A request that makes no sense, whatever the models and files are: values that do not go together.
class RequestError : public Error {
 public:
  using Error::Error;
};

// Thrown between two steps of work once Context::stop says so.
struct Stopped {};

// A piece of work that can be counted.
struct Work {
  std::string label;              // "dense scores"
  std::string unit;               // what is counted, in the plural
  std::int64_t total = 0;         // 0: unknown
  std::int64_t already_done = 0;  // where resumed work starts
};

// How far a piece of work is. Ends with the object.
class WorkReport {
 public:
  virtual ~WorkReport() = default;
  // `metric` is one number of interest, such as "loss 3.214". Cheap, so call it for every unit.
  virtual void update(std::int64_t done, std::string_view metric = {}) = 0;
  // All of it was done.
  virtual void finish() = 0;
};

struct Context {
  std::uint64_t seed = 0;  // of everything random
  Placement placement = {};
  Communicator* ranks = nullptr;  // null: this process alone
  // Folder of a low-rank adapter that is put on the model a study loads; empty: none.
  std::filesystem::path adapter = {};
  // Each may be empty: nobody watches, asks for an end or listens.
  std::function<std::unique_ptr<WorkReport>(const Work&)> watch = {};
  std::function<bool()> stop = {};
  std::function<void(const std::string&)> note = {};  // a sentence worth reading, not an error
  // A point more of a curve that is being measured, by whose curve it is.
  std::function<void(const std::string& label, double x, double y)> point = {};

  // Never null.
  std::unique_ptr<WorkReport> begin(const Work& work) const;
  void say(const std::string& sentence) const;
  bool stopping() const { return stop && stop(); }
  void throw_if_stopped() const;
  Communicator& communicator() const;
  // Whether this process writes what the study writes to disk.
  bool writes() const { return communicator().first(); }
};

// -------------------------------------------------------------------------------------------------
// Texts as tokens of a model, with messages that say whose text and whose model.

// encode() with `source` in front of what it says about bad text and `remedy` behind it.
std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options = {},
                                 std::string_view remedy = {});

// The same of a text that a model is to read from its beginning: behind the begin-of-text token
// that the tokenizer puts there, if it has one and the text does not begin with it. A text without
// tokens stays so.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text,
                                   const std::string& source, const EncodeOptions& options = {},
                                   std::string_view remedy = {});

// Wherever a prompt is a text, it may be token ids: id_prompt() makes such a text of "3,17,5", which
// encode_prompt() reads as these tokens and no others, whatever the tokenizer. Throws Error for
// what is no list of ids with commas or spaces between them.
std::string id_prompt(std::string_view ids);
// A prompt as results show it: ids as "3,17,5".
std::string shown_prompt(std::string_view prompt);
// The same of what a user says to a model that was trained to answer: a conversation of this one
// message, as the tokenizer's chat template writes it, up to where the answer begins.
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source);

// Throws Error when an id is beyond what the model has an embedding for.
void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model);

// -------------------------------------------------------------------------------------------------
// Models by name: `filigree info dense-12x12` finds the folder dense-12x12 in one of the places
// where models are kept. In this order:
//
//   the folders of the environment variable FILIGREE_MODELS, separated by colons
//   ../share/filigree/models from the program's folder, where the program is installed
//   share/filigree/models of the prefix that the library was configured for
//   models/ of the source tree, for a program in the build folder alone
//
// and then, as ORG/NAME[@REVISION][:FILE.gguf] or as NAME, in the cache of the Hugging Face hub that
// other programs share: HF_HUB_CACHE, hub/ of HF_HOME, ~/.cache/huggingface/hub. A folder of that name
// comes first. Nothing is downloaded but by FetchRequest (filigree/model_study.h).
//
// Transcoders are found by name in the same places.

// The pair of those that come with the program that results are shown on.
inline constexpr const char* kReferenceDense = "dense-28m";
inline constexpr const char* kReferenceSparse = "sparse-28m";

// Whether they exist or not.
std::vector<std::filesystem::path> model_places();

// The first folder of that name that holds a config.json, else what the cache of the hub has by it.
// Nothing for what is neither a plain name nor one of the hub, such as "../x" or an absolute path.
std::optional<std::filesystem::path> find_named_model(const std::string& name);

// "'/usr/share/filigree/models' (dense-12x12, sparse-12x12), '/home/x/models' (no such folder)":
// the places and the names of the models in them.
std::string model_places_text();

// The folder of a model: `name` itself, a GGUF file (.gguf), a state dict of PyTorch (.pth, .pt,
// .bin), or a model of that name in one of the places. Throws Error when there is none, or another
// file, and lists the places and what they have, or says how to fetch it.
std::filesystem::path model_folder(const std::string& name);

// What a model is read from. The folder of a low-rank adapter (peft's adapter_config.json) is a
// model by itself: with the base that it names, in the folder it was named from or beside it.
struct ModelSource {
  std::filesystem::path folder;   // as model_folder() gives it; of an adapter that of its base
  std::filesystem::path adapter;  // empty: none

  ModelConfig config() const;
  // `loaded` is the model of `folder`, if somebody has it: an adapted one shares its weights.
  std::unique_ptr<Model> load(const LoadOptions& options = {}, const Model* loaded = nullptr) const;
};
// Throws Error as model_folder does, and for adapters whose base is not found. `adapter` is put on
// the model where it is not empty.
ModelSource model_source(const std::string& name, const std::filesystem::path& adapter = {});

// Transcoders in the same places: a folder of that name with a config.yaml.
std::optional<std::filesystem::path> find_named_features(const std::string& name);
// A transcoder as a command names it: a folder or file, or a name. Throws Error as model_folder
// does.
std::filesystem::path features_path(const std::string& name);
// The one that goes with a model: `features` where it is not empty, else the folder MODEL-features
// beside the model's, as the bundled ones lie. Throws RequestError, naming `option`, when there is
// none.
std::filesystem::path features_of_model(const std::string& features, const std::string& model,
                                        const std::string& option = "--features");

// The tokenizer of a model's folder or name, or of a folder that holds only a tokenizer, or a
// tokenizer.json itself.
Tokenizer open_tokenizer(const std::string& name);
// Where a model's tokenizer lies: its folder, that of a state dict, or the GGUF file itself.
std::filesystem::path tokenizer_folder(const std::filesystem::path& model);
// Whether the folder holds one.
bool has_tokenizer(const std::filesystem::path& folder);

// The last part of each path, or the whole path where two would be called the same.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

// -------------------------------------------------------------------------------------------------
// A model that was loaded once, with what belongs to it, to be passed to every study that wants it.

class LoadedModel {
 public:
  // Reads the weights of a folder or of a model by name. Throws Error when there is none, with the
  // places that were looked in.
  LoadedModel(std::string name, std::string label, const LoadOptions& options = {});
  // One that is not from a folder, or is there already. Has the tokenizer of `folder`, if any.
  LoadedModel(std::string name, std::string label, std::unique_ptr<Model> model,
              std::filesystem::path folder = {});

  const std::string& name() const { return name_; }    // as the user gave it
  const std::string& label() const { return label_; }  // as figures and tables call it
  const std::filesystem::path& folder() const { return folder_; }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const ModelConfig& config() const { return model_->config(); }

  // Read when it is first asked for; throws Error when the folder has none.
  const Tokenizer& tokenizer() const;
  // Null when the folder has none.
  const Tokenizer* tokenizer_if_any() const;

 private:
  std::string name_, label_;
  std::filesystem::path folder_;
  std::unique_ptr<Model> model_;
  mutable std::optional<Tokenizer> tokenizer_;
};

// The models that a study is about, loaded, in the order in which its result names them. They must
// outlive the study, not its result, unless the result says so.
class Models : public std::span<const LoadedModel> {
 public:
  using span::span;
  Models(std::span<const LoadedModel> models) : span(models) {}
  Models(const LoadedModel& model) : span(&model, 1) {}

  // The model of a study of one. Throws RequestError for none and for several.
  const LoadedModel& only() const;
};

// Every study has one shape:
//
//   Result run(const Request& request, Models models, const Context& context)
//
// and beside its result to_json(result), and, where there are any, text_of(result) and
// figure_of(result): the program, the report and the server show a result through them. Requests
// name settings, texts and tasks; models come loaded, so that several studies share them. What only
// reads or makes files is given no models.

// Models side by side, in this order, under names short enough for figures (short_names). The
// context's adapter is put on the last of them, or on the one of that number. A model and its
// adapted twin share the weights that both have.
std::vector<LoadedModel> load_models(const std::vector<std::string>& names, const Context& context,
                                     LoadOptions options = {},
                                     std::optional<std::size_t> adapted = {});

// -------------------------------------------------------------------------------------------------
// Tokens that users name, prompts as a model takes them, and how tokens are shown.

// The token of a text such as " Mary". Throws Error, with `what` for its name, when the text is
// several tokens or one that the model does not have.
TokenId single_token(const LoadedModel& model, const std::string& text, const std::string& what);

// Throws Error, with `what` for its subject, for a model whose attention is bidirectional.
void require_causal(const LoadedModel& model, std::string_view what);

// The tokens of a prompt. Throws Error for one that is empty, longer than the model's context or
// not UTF-8, and where the tokenizer belongs to another model. With `chat` it is encode_chat()'s.
std::vector<TokenId> prompt_tokens(const LoadedModel& model, const std::string& text,
                                   bool chat = false);

// " the", or "<50260>" for an id that the tokenizer does not know.
std::string shown_token(const Tokenizer& tokenizer, TokenId id);

// The shown tokens of a result, so that it can be read without the tokenizer.
class ShownTokens {
 public:
  void add(const Tokenizer& tokenizer, TokenId id);
  // Of one that was added.
  const std::string& operator[](TokenId id) const { return texts_.at(id); }

 private:
  std::map<TokenId, std::string> texts_;
};

// -------------------------------------------------------------------------------------------------
// Text to look at a model's heads on where the user names none: prose that a model's folder brings
// along (held-out.txt), and sentences of the tasks in combinations that training never saw.

// A text that a model's folder may bring along, which the model was not trained on.
inline constexpr const char* kHeldOutFile = "held-out.txt";

// held-out.txt of the first of the folders that has it, else of the bundled dense model; nothing
// where there is neither.
std::optional<std::filesystem::path> find_held_out_text(
    std::span<const std::filesystem::path> model_folders);

struct SampleText {
  std::vector<TokenId> ids = {};
  std::string source = {};  // "held-out.txt and sentences of the tasks", "'prose.txt'"
};

// At most `tokens` of the file, or where it is empty half of them prose and the rest sentences.
// Throws Error for a model without a tokenizer and for a text that is empty or no UTF-8.
SampleText sample_text(const LoadedModel& model, const std::filesystem::path& file,
                       std::int64_t tokens, std::uint64_t seed);

// -------------------------------------------------------------------------------------------------
// Interventions (analyze/interventions) as studies take them: with the tokens of a model, and as
// JSON.

// "changed: L6H11 ablated" on a line of its own, or nothing.
std::string changed_text(const Interventions& interventions);

// The same with the texts of patches as tokens. Throws Error for a place that the model does not
// have, and for a text that does not fit it.
Interventions for_model(Interventions interventions, const LoadedModel& model);
// And with positions that are named by tokens as numbers, for runs of one text.
Interventions for_text(Interventions interventions, const LoadedModel& model,
                       std::span<const TokenId> ids);

// Throws Error when one is at a position that a run of `length` tokens does not have.
void check_positions(const Interventions& interventions, std::int64_t length);
// The same, and when a patch, whose text must have its tokens, does not fit such a run.
void check_fits(const Interventions& interventions, std::int64_t length);

// A list, empty when nothing is changed.
Json to_json(const Interventions& interventions);

}  // namespace filigree::study
