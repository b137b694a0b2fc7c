// Fields of comma-separated values, as RFC 4180 wants them, and safe where people open them: a
// spreadsheet takes text that begins with = + - or @ for a formula, so such text gets a ' before
// it.
#pragma once

#include <string>
#include <string_view>

namespace filigree {

std::string csv_field(std::string_view text);

// Shortest digits that give the number back; empty where it is not finite.
std::string csv_number(double value);

}  // namespace filigree
