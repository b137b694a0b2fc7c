// A target with planted faults: it misbehaves on certain words, which the tests of the driver feed
// to it to see that each kind of fault is found and its input saved.
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "fuzz_target.h"

namespace {

// Each level holds memory that the next one needs, so that no optimisation flattens the recursion.
int descend(const volatile char* above) {
  volatile char frame[1024];
  frame[0] = above[0];
  if (frame[0] == '\0') return 0;  // never
  return frame[0] + descend(frame) + frame[0];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input == "abort") std::abort();
  if (input == "throw") throw std::runtime_error("planted");
  if (input == "descend") return descend("x") & 0;
  if (input == "promise") filigree::fuzz::expect(false, "planted");
  if (input == "hang") {
    volatile bool forever = true;
    while (forever) {
    }
  }
  if (input == "allocate") {
    volatile std::size_t huge = std::size_t{1} << 36;
    std::vector<char> block;
    block.reserve(huge);
    return block.capacity() == 0 ? 1 : 0;
  }
  // Not among the seeds: the mutator has to find it.
  if (input.find("needle") != std::string_view::npos) throw std::runtime_error("found the needle");
  return 0;
}
