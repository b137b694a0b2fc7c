// What a repository of the hub holds, as its API lists it, and which of that a model needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace filigree::hub {

struct ListedFile {
  std::string name;
  std::optional<std::uint64_t> bytes;  // where the server says it
  std::string sha256;                  // of a large file, where the server says it
};

struct Listing {
  std::string commit;
  std::vector<ListedFile> files;  // sorted by name

  const ListedFile* find(std::string_view name) const;
};

// JSON of GET api/models/ORG/NAME/revision/REVISION. `source` is what messages call it. Throws
// Error for what is no listing, for more files than any model has, and for names that lead out of a
// folder.
Listing parse_listing(std::string_view text, const std::string& source);

struct NeededFiles {
  std::vector<std::string> files;
  std::string index;  // one of them, that names further ones (shards_of_index)
};

// Configuration, tokenizer and weights: model.safetensors, else its shards, else the same of
// pytorch_model.bin, else the only GGUF file, else an adapter. With a `file`, that one and what
// lies beside it for it. Throws Error, naming `model`, where there is no such file, and where a
// model cannot be told: nothing that Filigree reads, or several GGUF files.
NeededFiles needed_files(const Listing& listing, const std::string& file, const std::string& model);

// The shards that an index names. Throws Error for one that is not in the listing.
std::vector<std::string> shards_of_index(std::string_view index, const std::string& source,
                                         const Listing& listing);

}  // namespace filigree::hub
