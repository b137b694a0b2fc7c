// Checks of what is written after an option, worded for people: "'x' is not a whole number from 1
// to 1024". A check says what kind of value it takes, so that help, shell completion and tests
// know.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/cli/program/session.h"
#include "filigree/error.h"

namespace filigree::cli {

CLI::Validator whole_number(std::int64_t least, std::int64_t most);
CLI::Validator number(double least, double most);
// A number above `bound` up to `most`.
CLI::Validator number_above(double bound, double most);
// One of these names: "'x' is none of exact, ig; did you mean 'ig'?".
CLI::Validator one_of(std::vector<std::string> names);
// Some of them, separated by commas.
CLI::Validator some_of(std::vector<std::string> names);
// A choice of heads as filigree/maps.h reads it; whether the model has them shows
// later.
CLI::Validator head_list();
// A file name that ends in .svg, .pdf or .png.
CLI::Validator figure_file();
// What `check` throws no Error for. `kind` is one word for it: "size".
CLI::Validator checked_by(const std::string& kind, std::function<void(const std::string&)> check);

// "10MB", "1.5 GB", "300": bytes in decimal units, as sizes are printed. Throws Error.
std::uint64_t parse_size(const std::string& text);

// What an option takes.
struct ValueKind {
  std::string label;                 // as help shows it: "N", "FILE"
  std::string kind;                  // "number", "choice", "choices", "heads", ...; "": any text
  std::vector<std::string> choices;  // of "choice" and "choices"
};
ValueKind value_kind(const CLI::Option& option);

// "; did you mean 'eval'?" when something is near enough to be a slip of the fingers.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

// The parts of a list with commas; "" has one empty part.
std::vector<std::string> split_commas(const std::string& text);

// Calls `read`, which reads what was written after `option`: its Error is one of usage, exit code
// 2.
template <typename Read>
auto as_usage(const std::string& option, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace filigree::cli
