// The words that several tasks fill their sentences with.
#pragma once

#include <span>
#include <string_view>

#include "filigree/random.h"

namespace filigree::corpus {

// First names that are one gender's only.
std::span<const std::string_view> male_names();
std::span<const std::string_view> female_names();
// Both.
std::span<const std::string_view> names();

std::span<const std::string_view> places();      // "at the ..."
std::span<const std::string_view> things();      // that a hand can give
std::span<const std::string_view> containers();  // that a thing can lie in
std::span<const std::string_view> professions();
std::span<const std::string_view> plain_words();  // short nouns and adjectives without relation

}  // namespace filigree::corpus
