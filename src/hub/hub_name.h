// Models as the Hugging Face hub names them: ORG/NAME[@REVISION][:FILE], or NAME alone for the few
// that have no organisation. Only what huggingface_hub takes for a name is one here, so that no
// name leads out of the cache or changes what an address means.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace filigree::hub {

inline constexpr const char* kMainRevision = "main";

struct HubName {
  std::string repository;                // "org/name"
  std::string revision = kMainRevision;  // a branch, a tag or a commit
  std::string file = {};                 // one file of it, "q4/model.gguf"; empty: the model

  // As it is written; without what is meant anyway.
  std::string text() const;
  // Without one it may be any word.
  bool has_organisation() const { return repository.find('/') != std::string::npos; }
};

// Throws Error that says what is wrong with the name.
HubName parse_hub_name(std::string_view text);
// Nothing for what is no such name.
std::optional<HubName> hub_name_if_any(std::string_view text);

// 40 hexadecimal digits, in small letters.
bool is_commit(std::string_view text);

// Whether a file of a repository may be called so: folders with '/' between them, none of them "."
// or
// "..", no control characters and no backslash.
bool is_file_of_repository(std::string_view name);

}  // namespace filigree::hub
