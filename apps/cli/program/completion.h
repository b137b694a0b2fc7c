// Scripts that let a shell complete commands and options.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <string_view>

namespace filigree::cli {

// Of "bash" or "zsh".
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace filigree::cli
