// What a fuzz target shares with its driver. A target is one file fuzz_NAME.cpp that defines
// LLVMFuzzerTestOneInput; it returns 0, catches filigree::Error (the right answer to bad input) and
// lets everything else be found: crashes, other exceptions, hangs, huge allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "filigree/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace filigree::fuzz {

// What came of the current input, as hashes of messages, for a driver without coverage
// instrumentation: an input with an outcome not seen before is worth mutating further.
// The driver empties it before each input; libFuzzer does not know it, hence the bound.
inline std::vector<std::uint64_t> outcomes;
inline constexpr std::size_t kMostOutcomes = 4096;

// Notes a message, such as an Error's. Digits, all from the first quote to the last, and what the
// JSON parser repeats of the text are the input's own words and left out, so that one check counts
// once.
inline void note_outcome(std::string_view message) {
  if (outcomes.size() >= kMostOutcomes) return;
  message = message.substr(0, message.find("; last read"));
  message = message.substr(0, message.find("; expected"));
  const std::size_t first = message.find_first_of("'\"");
  const std::size_t last = message.find_last_of("'\"");
  std::uint64_t hash = 0xCBF29CE484222325;
  for (std::size_t i = 0; i < message.size(); ++i) {
    const bool quoted = first <= i && i <= last;
    const bool digit = message[i] >= '0' && message[i] <= '9';
    if (!quoted && !digit) hash = (hash ^ static_cast<unsigned char>(message[i])) * 0x100000001B3;
  }
  outcomes.push_back(hash);
}

// An Error is the right answer to bad input.
template <typename Action>
void attempt(Action action) {
  try {
    action();
  } catch (const Error& error) {
    note_outcome(error.what());
  }
}

// A promise of the code under test; a broken one is a finding like a crash.
inline void expect(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace filigree::fuzz
