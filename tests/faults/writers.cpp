#include <fmt/format.h>

#include <thread>

#include "filigree/random.h"
#include "tests/faults/parts.h"

namespace filigree::faults {
namespace {

// Whether it ended as the one that comes second may: it says that the folder is taken.
bool gave_way(const Ended& ended) {
  if (ended.code != 1) return false;
  for (const char* reason :
       {"is in use by ", " already", " holds a model", "is of another model, task"})
    if (ended.said.find(reason) != std::string::npos) return true;
  return false;
}

bool same(const std::string& name, const Tree& found, const Expected& expected) {
  const auto stored = expected.files.find(name);
  return stored != expected.files.end() &&
         (found.at(name) == stored->second || expected.varying.contains(name));
}

// "" when what is found is all of the winner's, and beside it nothing but files of the other.
std::string not_of(const Tree& found, const Expected& winner, const Expected* other) {
  for (const auto& [name, bytes] : winner.files)
    if (!found.contains(name) || !same(name, found, winner))
      return fmt::format("'{}' is not that of the winner", name);
  for (const auto& [name, bytes] : found)
    if (!winner.files.contains(name) && (other == nullptr || !same(name, found, *other)))
      return fmt::format("'{}' is of neither", name);
  return "";
}

std::string judge(const Scenario& scenario, const fs::path& out, const Ended& first,
                  const Ended& second, const Expected& a, const Expected& b) {
  for (const Ended* ended : {&first, &second})
    if (!ended->did_its_work() && !gave_way(*ended))
      return fmt::format("one ended with {}, signal {}: {}", ended->code, ended->signal,
                         ended->said);
  const Tree found = read_tree(out);
  if (scenario.one_by_one) {
    for (const auto& [name, bytes] : found)
      if (!same(name, found, a) && !same(name, found, b))
        return fmt::format("'{}' is of neither", name);
    return "";
  }
  const bool both = first.did_its_work() && second.did_its_work();
  if (!both && !first.did_its_work() && !second.did_its_work())
    return "neither of them has a result";
  const std::string not_a = not_of(found, a, both ? &b : nullptr),
                    not_b = not_of(found, b, both ? &a : nullptr);
  if (both) return not_a.empty() || not_b.empty() ? "" : "a mixture: " + not_a + ", " + not_b;
  return first.did_its_work() ? not_a : not_b;
}

}  // namespace

Tally two_writers(const Scenario& scenario, const Expected& expected, const Place& place,
                  long rounds) {
  Tally tally;
  Scenario rival = scenario;
  rival.command = scenario.rival;
  const auto begun = std::chrono::steady_clock::now();
  const Expected others = undisturbed(rival, place);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(
      (std::chrono::steady_clock::now() - begun) / 2);
  Random random(11);
  for (long round = 0; round < rounds; ++round) {
    const fs::path out = fresh_folder(scenario, place);
    // Half of them at once, the others somewhat after another.
    const auto later = std::chrono::milliseconds(
        round % 2 == 0 ? 0 : random.below(static_cast<std::uint32_t>(whole.count() + 1)));
    const bool rival_first = round % 4 >= 2;
    const Place::Running one =
        place.begin({rival_first ? scenario.rival(out) : scenario.command(out)});
    std::this_thread::sleep_for(later);
    const Place::Running other =
        place.begin({rival_first ? scenario.command(out) : scenario.rival(out)});
    Ended first = place.end(one), second = place.end(other);
    if (rival_first) std::swap(first, second);
    tally.count(
        fmt::format("{}: two at once, {} ms apart, round {}", scenario.name, later.count(), round),
        judge(scenario, out, first, second, expected, others));
  }
  return tally;
}

}  // namespace filigree::faults
