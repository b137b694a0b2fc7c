// The options that every command that trains has.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "filigree/training_study.h"

namespace filigree::cli {

// --dry-run goes to `dry_run`, all others to the request.
void add_training_options(CLI::App& app, study::TrainingRequest& request, bool& dry_run);

// How often a run is logged and saved; `kept` says what --keep keeps.
void add_checkpoint_options(CLI::App& app, std::int64_t& log_every, std::int64_t& checkpoint_every,
                            int& keep, const char* kept);

// The options of a command under the heading `group`: numbers in range with the value as default.
CLI::Option* add_count(CLI::App& app, const char* group, const char* name, std::int64_t& value,
                       const char* what, std::int64_t least, std::int64_t most);
CLI::Option* add_number(CLI::App& app, const char* group, const char* name, double& value,
                        const char* what, const CLI::Validator& check);
// One that is derived, as `otherwise` says, where it is not given.
CLI::Option* add_optional_number(CLI::App& app, const char* group, const char* name,
                                 std::optional<double>& value, const char* what,
                                 const CLI::Validator& check, const std::string& otherwise);

}  // namespace filigree::cli
