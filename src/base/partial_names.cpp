#include "base/partial_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace filigree {
namespace {

struct PartialPlace {
  std::atomic<bool> taken = false;
  std::atomic<bool> named = false;  // set last, and taken back first
  int folder = AT_FDCWD;
  std::array<char, 1024> name = {};
};
std::array<PartialPlace, 64> partial_places;

}  // namespace

PartialName::PartialName(int folder, const std::string& name) {
  if (name.size() >= partial_places[0].name.size()) return;
  for (std::size_t i = 0; i < partial_places.size(); ++i) {
    PartialPlace& place = partial_places[i];
    if (place.taken.exchange(true)) continue;
    place.folder = folder;
    std::memcpy(place.name.data(), name.c_str(), name.size() + 1);
    place.named = true;
    place_ = static_cast<int>(i);
    return;
  }
}

PartialName::PartialName(PartialName&& other) noexcept : place_(std::exchange(other.place_, -1)) {}

PartialName& PartialName::operator=(PartialName&& other) noexcept {
  if (this == &other) return *this;
  forget();
  place_ = std::exchange(other.place_, -1);
  return *this;
}

void PartialName::forget() noexcept {
  if (place_ < 0) return;
  PartialPlace& place = partial_places[static_cast<std::size_t>(std::exchange(place_, -1))];
  place.named = false;
  place.taken = false;
}

void remove_partial_files() noexcept {
  for (PartialPlace& place : partial_places)
    if (place.named.exchange(false)) ::unlinkat(place.folder, place.name.data(), 0);
}

}  // namespace filigree
