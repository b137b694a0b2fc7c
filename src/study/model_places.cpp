#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/file_status.h"
#include "features/files/circuit_tracer_names.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "hub/cache.h"
#include "io/gguf.h"
#include "io/torch_file.h"
#include "model/peft_adapter.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFeaturesSuffix = "-features";

// A name, not a way to a folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

// What makes a folder of the places one that is looked for.
struct Kind {
  const char* config;
  const char* none;
};
constexpr Kind kModels = {"config.json", "no models"};
constexpr Kind kTranscoders = {kTranscoderConfig, "no transcoders"};

bool is_one(const fs::path& path, const Kind& kind) {
  return is_file(path / kind.config) ||
         (kind.config == kModels.config && has_gguf_ending(path) && is_file(path));
}

std::vector<std::string> names_in(const fs::path& place, const Kind& kind) {
  std::vector<std::string> names;
  if (!is_folder(place)) return names;
  for (const FolderEntry& entry : entries_of(place))
    if (is_one(place / entry.name, kind)) names.push_back(printable(entry.name));
  return names;
}

std::optional<fs::path> find_named(const std::string& name, const Kind& kind) {
  if (!is_plain_name(name)) return std::nullopt;
  for (const fs::path& place : model_places())
    if (is_one(place / name, kind)) return place / name;
  return std::nullopt;
}

std::string places_text(const Kind& kind) {
  std::vector<std::string> texts;
  for (const fs::path& place : model_places()) {
    std::string found;
    try {
      found = join(names_in(place, kind), ", ");
      if (found.empty()) found = is_folder(place) ? kind.none : "no such folder";
    } catch (const Error& error) {
      found = error.what();  // what is not found is what the message is about
    }
    texts.push_back(fmt::format("'{}' ({})", printable(place.string()), found));
  }
  return join(texts, ", ");
}

std::string last_part(const std::string& path) {
  const std::filesystem::path lexical = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path name =
      lexical.has_filename() ? lexical.filename() : lexical.parent_path().filename();
  return name.empty() || name == "." || name == ".." ? path : name.string();
}

bool lies_below(const fs::path& file, const fs::path& folder) {
  std::error_code ignored;
  const fs::path real = fs::canonical(folder, ignored);
  return !real.empty() &&
         std::mismatch(real.begin(), real.end(), file.begin(), file.end()).first == real.end();
}

// Why a model of the hub is not there, and what brings it.
std::string missing_of_hub(const hub::HubName& name) {
  const std::optional<fs::path> cache = hub::cache_folder_if_any();
  const std::vector<std::string> others =
      cache ? hub::cached_revisions(*cache, name.repository) : std::vector<std::string>();
  return fmt::format(
      "model '{}': no such folder, and not in the cache of the Hugging Face hub, '{}'{}; fetch it: "
      "filigree fetch {}",
      name.text(), cache ? printable(cache->string(), 400) : "HF_HUB_CACHE",
      others.empty() ? "" : fmt::format(" (it has the revision {})", join(others, ", ")),
      name.text());
}

}  // namespace

std::vector<fs::path> model_places() {
  std::vector<fs::path> places;
  const auto add_place = [&](const fs::path& place) {
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  };
  if (const char* folders = std::getenv("FILIGREE_MODELS")) {
    const std::string list = folders;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      if (end > begin) add_place(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) add_place(program.parent_path().parent_path() / "share" / "filigree" / "models");
  add_place(FILIGREE_INSTALLED_MODELS);
  if (!error && lies_below(program, FILIGREE_BUILD_FOLDER)) add_place(FILIGREE_SOURCE_MODELS);
  return places;
}

std::optional<fs::path> find_named_model(const std::string& name) {
  if (auto found = find_named(name, kModels)) return found;
  return hub::find_in_cache(name);
}

std::string model_places_text() { return places_text(kModels); }

std::filesystem::path model_folder(const std::string& name) {
  const std::optional<FileStatus> status = status_of(name);
  if (status && status->kind == FileKind::kFolder) return name;
  if (status && status->kind == FileKind::kFile &&
      (has_torch_ending(name) || has_gguf_ending(name)))
    return name;
  if (status)
    fail(
        "model '{}' is a file; give the folder that holds config.json and *.safetensors, a GGUF "
        "file (.gguf), or a PyTorch state dict (.pth, .pt, .bin)",
        printable(name));
  if (const auto named = find_named(name, kModels)) return *named;
  if (const auto cached = hub::find_in_cache(name)) {
    const bool whole = !is_folder(*cached) || is_peft_adapter(*cached) ||
                       (is_file(*cached / kModels.config) && hub::has_weights(*cached));
    if (!whole)
      fail(
          "model '{}': its folder in the cache, '{}', has no whole model; fetch the rest: filigree "
          "fetch {}",
          name, printable(cached->string(), 400), name);
    return *cached;
  }
  const std::optional<hub::HubName> of_hub = hub::hub_name_if_any(name);
  if (of_hub && of_hub->has_organisation()) fail("{}", missing_of_hub(*of_hub));
  if (name.find('/') != std::string::npos)
    fail("model '{}': no such folder; a model is a folder with config.json and *.safetensors",
         printable(name));
  fail(
      "model '{}': no such folder, and no model of that name in {}; give a folder with config.json "
      "and *.safetensors, put the places to look for names into FILIGREE_MODELS, or fetch it from "
      "the Hugging Face hub: filigree fetch {}",
      printable(name), model_places_text(), of_hub ? of_hub->text() : "ORG/NAME");
}

ModelSource model_source(const std::string& name, const fs::path& given) {
  const fs::path folder = model_folder(name);
  const fs::path adapter =
      given.empty() || is_there(given) ? given : find_named_model(given.string()).value_or(given);
  if (!is_peft_adapter(folder)) {
    require(adapter.empty() || is_peft_adapter(adapter),
            "'{}' is no adapter; give a folder with {}", printable(adapter.string()),
            kAdapterConfig);
    return {folder, adapter};
  }
  require(adapter.empty(), "'{}' is an adapter itself; name the model that '{}' is for",
          printable(name), printable(adapter.string()));
  const std::string base = base_of_adapter(folder);
  // A path is from where the adapter was made; it may have moved together with its base, or with
  // the run whose folder it lies in.
  if (!is_there(base) && !find_named_model(base))
    for (const fs::path& near : {fs::path(".."), fs::path("..") / ".."}) {
      const fs::path beside = folder / near / fs::path(base).filename();
      if (is_file(beside / kModels.config)) return {beside.lexically_normal(), folder};
    }
  try {
    return {model_folder(base), folder};
  } catch (const Error& error) {
    fail("adapter '{}': {}; name the model and give the adapter with --adapter", printable(name),
         error.what());
  }
}

ModelConfig ModelSource::config() const {
  ModelConfig own = read_model_config(folder);
  return adapter.empty() ? own : adapted_config(std::move(own), adapter);
}

std::unique_ptr<Model> ModelSource::load(const LoadOptions& options, const Model* loaded) const {
  if (adapter.empty()) return load_model(folder, options);
  std::unique_ptr<Model> base;
  if (loaded == nullptr) loaded = (base = load_model(folder, options)).get();
  return adapted_model(*loaded, adapter);
}

std::optional<fs::path> find_named_features(const std::string& name) {
  return find_named(name, kTranscoders);
}

fs::path features_path(const std::string& name) {
  if (is_there(name)) return name;
  if (const auto named = find_named_features(name)) return *named;
  fail("transcoder '{}': there is no such folder or file, and none of that name in {}",
       printable(name), places_text(kTranscoders));
}

fs::path features_of_model(const std::string& features, const std::string& model,
                           const std::string& option) {
  if (!features.empty()) return features_path(features);
  const std::optional<fs::path> folder =
      is_folder(model) ? fs::path(model) : find_named_model(model);
  if (folder) {
    // Without a slash at its end, and of "." what it stands for.
    std::error_code without;
    fs::path beside = fs::absolute(*folder, without).lexically_normal();
    if (!beside.has_filename()) beside = beside.parent_path();
    beside += kFeaturesSuffix;
    if (is_one(beside, kTranscoders)) return beside;
  }
  throw RequestError(
      fmt::format("say which transcoder: {} DIR; none came with '{}'", option, printable(model)));
}

fs::path tokenizer_folder(const fs::path& model) {
  if (has_gguf_ending(model) || !is_file(model)) return model;
  return model.has_parent_path() ? model.parent_path() : fs::path(".");
}

Tokenizer open_tokenizer(const std::string& name) {
  const std::optional<FileStatus> status = status_of(name);
  if (status && status->kind == FileKind::kFolder) return Tokenizer::from_folder(name);
  if (status && status->kind == FileKind::kFile) {
    if (has_gguf_ending(name)) return Tokenizer::from_folder(name);
    require(name.ends_with(".json"),
            "'{}' is a file; give the folder of a model or tokenizer, a GGUF file (.gguf), or a "
            "tokenizer.json",
            printable(name));
    return Tokenizer::from_tokenizer_json(name);
  }
  if (const auto named = find_named_model(name))
    return Tokenizer::from_folder(tokenizer_folder(*named));
  if (const auto of_hub = hub::hub_name_if_any(name); of_hub && of_hub->has_organisation())
    fail("{}", missing_of_hub(*of_hub));
  fail(
      "'{}': no such folder; give one with tokenizer.json, or vocab.json and merges.txt, or the "
      "name of a model in {}",
      printable(name), model_places_text());
}

bool has_tokenizer(const std::filesystem::path& folder) { return Tokenizer::is_in(folder); }

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::string> parts;
  for (const std::string& path : paths) parts.push_back(last_part(path));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < paths.size(); ++i)
    names.push_back(std::count(parts.begin(), parts.end(), parts[i]) > 1 ? paths[i] : parts[i]);
  return names;
}

}  // namespace filigree::study
