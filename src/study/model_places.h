// Models by name: `filigree info dense-12x12` finds the folder dense-12x12 in one of the places
// where models are kept. In this order:
//
//   the folders of the environment variable FILIGREE_MODELS, separated by colons
//   ../share/filigree/models from the program's folder, where the program is installed
//   share/filigree/models of the prefix that the library was configured for
//   models/ of the source tree, for a program in the build folder alone
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "filigree/text/tokenizer.h"

namespace filigree::study {

// The reference models that come with the program.
inline constexpr const char* kBundledDense = "dense-12x12";
inline constexpr const char* kBundledSparse = "sparse-12x12";

// Whether they exist or not.
std::vector<std::filesystem::path> model_places();

// The first folder of that name that holds a config.json. Nothing for what is no plain name, such
// as "../x" or an absolute path.
std::optional<std::filesystem::path> find_named_model(const std::string& name);

// "'/usr/share/filigree/models' (dense-12x12, sparse-12x12), '/home/x/models' (no such folder)":
// the places and the names of the models in them.
std::string model_places_text();

// The folder of a model: `name` itself, or a model of that name in one of the places. Throws Error
// when there is none, or a file, and lists the places and what they have.
std::filesystem::path model_folder(const std::string& name);

// The tokenizer of a model's folder or name, or of a folder that holds only a tokenizer, or a
// tokenizer.json itself.
Tokenizer open_tokenizer(const std::string& name);
// Whether the folder holds one.
bool has_tokenizer(const std::filesystem::path& folder);

// The last part of each path, or the whole path where two would be called the same.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace filigree::study
