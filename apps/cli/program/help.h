// The layout of --help: usage, arguments, options, examples, within the width of the terminal.
#pragma once

#include <CLI/App.hpp>

#include <string>

namespace filigree::cli {

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace filigree::cli
