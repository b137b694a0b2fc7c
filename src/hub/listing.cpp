#include "hub/listing.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>

#include "filigree/error.h"
#include "filigree/names.h"
#include "hub/hub_name.h"
#include "io/checkpoint.h"
#include "io/gguf.h"
#include "io/torch_file.h"
#include "json/object.h"

namespace filigree::hub {
namespace {

constexpr std::size_t kMaxFiles = 100000;
constexpr JsonLimits kListingLimits = {.max_bytes = std::size_t{64} << 20,
                                       .max_depth = 32,
                                       .max_values = 2000000,
                                       .max_string_bytes = std::size_t{1} << 20};

// What belongs to a model besides its weights, where it is there.
constexpr std::array kBesideWeights = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "tokenizer.model",
                                       "chat_template.jinja"};
// Weights, the first that is there; of those with an index the shards too.
constexpr std::array kWeights = {"model.safetensors", "model.safetensors.index.json",
                                 "model-i8.safetensors", "pytorch_model.bin",
                                 "pytorch_model.bin.index.json"};
constexpr std::array kAdapter = {"adapter_config.json", "adapter_model.safetensors", "gates.json"};

bool is_index(std::string_view name) { return name.ends_with(".index.json"); }

std::optional<std::uint64_t> size_of(const JsonObject& file) {
  if (!file.has("size")) return std::nullopt;
  return static_cast<std::uint64_t>(file.integer("size", 0));
}

// 64 small hexadecimal digits; "" where the server says something else.
std::string sha256_of(const JsonObject& file) {
  constexpr std::size_t kDigits = 64;
  if (!file.has("lfs")) return "";
  const std::string sha256 = file.object("lfs").string_or("sha256", "");
  const bool is_one =
      sha256.size() == kDigits && sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_one ? sha256 : "";
}

std::vector<std::string> gguf_files_at_the_top(const Listing& listing) {
  std::vector<std::string> files;
  for (const ListedFile& file : listing.files)
    if (has_gguf_ending(file.name) && file.name.find('/') == std::string::npos)
      files.push_back(file.name);
  return files;
}

void add_if_listed(const Listing& listing, const std::string& name, NeededFiles& needed) {
  if (listing.find(name) != nullptr &&
      std::find(needed.files.begin(), needed.files.end(), name) == needed.files.end())
    needed.files.push_back(name);
}

std::string some_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    shown.push_back(printable(names[i]));
  return join(shown, ", ") +
         (names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

NeededFiles one_file(const Listing& listing, const std::string& file, const std::string& model) {
  require(has_gguf_ending(file) || has_torch_ending(file),
          "'{}': a file that is named is a model by itself: .gguf, .pt, .pth, .bin or .ckpt",
          printable(model));
  if (listing.find(file) == nullptr) {
    std::vector<std::string> files;
    for (const ListedFile& listed : listing.files)
      if (has_gguf_ending(listed.name) || has_torch_ending(listed.name))
        files.push_back(listed.name);
    fail("'{}': the repository has no such file; it has {}", printable(model),
         files.empty() ? "none of that kind" : some_names(files));
  }
  NeededFiles needed = {{file}, ""};
  if (has_gguf_ending(file)) return needed;
  // Of a state dict, its configuration and the names of its tokens lie beside it.
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  add_if_listed(listing, file.substr(0, file.rfind('.')) + ".json", needed);
  for (const char* name : kBesideWeights) add_if_listed(listing, folder + name, needed);
  return needed;
}

}  // namespace

const ListedFile* Listing::find(std::string_view name) const {
  const auto found = std::lower_bound(
      files.begin(), files.end(), name,
      [](const ListedFile& file, std::string_view key) { return file.name < key; });
  return found != files.end() && found->name == name ? &*found : nullptr;
}

Listing parse_listing(std::string_view text, const std::string& source) {
  const JsonObject root = JsonObject::parse(text, source, kListingLimits);
  Listing listing;
  listing.commit = root.string("sha");
  require(is_commit(listing.commit), "{}: 'sha' is '{}', should be a commit of 40 digits", source,
          printable(listing.commit));
  const std::vector<JsonObject> files = root.objects("siblings");
  require(files.size() <= kMaxFiles, "{} lists {} files; at most {} are read", source, files.size(),
          kMaxFiles);
  for (const JsonObject& file : files) {
    std::string name = file.string("rfilename");
    require(is_file_of_repository(name),
            "{} lists the file '{}', which is no name of a file below a folder", source,
            printable(name));
    listing.files.push_back({std::move(name), size_of(file), sha256_of(file)});
  }
  std::sort(listing.files.begin(), listing.files.end(),
            [](const ListedFile& a, const ListedFile& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < listing.files.size(); ++i)
    require(listing.files[i - 1].name != listing.files[i].name, "{} lists the file '{}' twice",
            source, printable(listing.files[i].name));
  return listing;
}

NeededFiles needed_files(const Listing& listing, const std::string& file,
                         const std::string& model) {
  if (!file.empty()) return one_file(listing, file, model);
  NeededFiles needed;
  for (const char* name : kBesideWeights) add_if_listed(listing, name, needed);
  for (const char* name : kWeights) {
    if (listing.find(name) == nullptr) continue;
    needed.files.emplace_back(name);
    if (is_index(name)) needed.index = name;
    return needed;
  }
  const std::vector<std::string> gguf = gguf_files_at_the_top(listing);
  if (gguf.size() == 1) return {{gguf[0]}, ""};
  require(gguf.empty(), "'{}' has several GGUF files; name one, as {}:{}: {}", printable(model),
          printable(model), printable(gguf.empty() ? "" : gguf[0]), some_names(gguf));
  if (listing.find(kAdapter[0]) != nullptr && listing.find(kAdapter[1]) != nullptr) {
    for (const char* name : kAdapter) add_if_listed(listing, name, needed);
    return needed;
  }
  std::vector<std::string> names;
  for (const ListedFile& listed : listing.files) names.push_back(listed.name);
  fail(
      "'{}' has no weights that Filigree reads (model.safetensors, pytorch_model.bin, their "
      "shards, "
      "or a GGUF file); it has {}",
      printable(model), names.empty() ? "no files" : some_names(names));
}

std::vector<std::string> shards_of_index(std::string_view index, const std::string& source,
                                         const Listing& listing) {
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : parse_weight_map(index, source)) shards.insert(shard);
  for (const std::string& shard : shards)
    require(listing.find(shard) != nullptr,
            "'{}' names the shard '{}', which is not in the repository", source, printable(shard));
  return {shards.begin(), shards.end()};
}

}  // namespace filigree::hub
