// Models by name: `filigree info dense-12x12` finds the folder dense-12x12 in one of the places
// where models are kept. In this order:
//
//   the folders of the environment variable FILIGREE_MODELS, separated by colons
//   ../share/filigree/models from the program's folder, where the program is installed
//   share/filigree/models of the prefix that the library was configured for
//   models/ of the source tree, for a program in the build folder alone
//
// Transcoders are found by name in the same places.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace filigree::study {

// The pair of those that come with the program that results are shown on.
inline constexpr const char* kReferenceDense = "dense-28m";
inline constexpr const char* kReferenceSparse = "sparse-28m";

// Whether they exist or not.
std::vector<std::filesystem::path> model_places();

// The first folder of that name that holds a config.json. Nothing for what is no plain name, such
// as "../x" or an absolute path.
std::optional<std::filesystem::path> find_named_model(const std::string& name);

// "'/usr/share/filigree/models' (dense-12x12, sparse-12x12), '/home/x/models' (no such folder)":
// the places and the names of the models in them.
std::string model_places_text();

// The folder of a model: `name` itself, a state dict of PyTorch (.pth, .pt, .bin), or a model of
// that name in one of the places. Throws Error when there is none, or another file, and lists the
// places and what they have.
std::filesystem::path model_folder(const std::string& name);

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
// Where a model's tokenizer lies: its folder, or that of a state dict.
std::filesystem::path tokenizer_folder(const std::filesystem::path& model);
// Whether the folder holds one.
bool has_tokenizer(const std::filesystem::path& folder);

// The last part of each path, or the whole path where two would be called the same.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace filigree::study
