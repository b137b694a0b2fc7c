// The options of commands that draw.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

#include "filigree/study.h"
#include "filigree/study_figures.h"

namespace filigree::cli {

// --format; `formats` holds svg and png when it is not given.
void add_figure_formats(CLI::App& app, std::vector<figure::Format>& formats);

// --out FILE of a command that draws one figure. Commands call study::check_figure_file() before
// they start to work.
void add_figure_file(CLI::App& app, std::string& file);
// The file as a command's JSON names it: null where none was asked for.
study::Json out_json(const std::string& file);

}  // namespace filigree::cli
