#include <fmt/format.h>

#include "tests/faults/parts.h"

namespace filigree::faults {
namespace {

std::string spoiled(const Scenario& scenario, const Expected& expected, const Place& place,
                    const fs::path& out, const Ended& ended) {
  if (std::string wrong = wrong_end(scenario, ended); !wrong.empty()) return wrong;
  if (scenario.must_fail)
    return ended.code == 1 ? "" : fmt::format("it succeeded with {}: {}", ended.code, ended.said);
  if (ended.code != 1) {
    // It says that it has its result. A checkpoint whose removal failed goes with the next run.
    std::string wrong = differences(out, expected);
    if (wrong.find(".removed/' was left behind") != std::string::npos)
      wrong = recover(scenario, place, out, expected);
    if (!wrong.empty()) return "it succeeded, and " + wrong;
    if (scenario.check) return scenario.check(out);
    return "";
  }
  return recover(scenario, place, out, expected);
}

}  // namespace

long count_looks(const Scenario& scenario, const Place& place) {
  return place.operations(scenario.command(fresh_folder(scenario, place)), place.scratch, "reads");
}

Tally fail_reads(const Scenario& scenario, const Expected& expected, const Place& place,
                 const std::string& kind, long count, Points points) {
  Tally tally;
  for (long point = points.first; point <= count; point += points.stride) {
    const fs::path out = fresh_folder(scenario, place);
    const Ended ended = place.run({scenario.command(out),
                                   {{"FAULTS_UNDER", place.scratch.string()},
                                    {"FAULTS_AT", std::to_string(point)},
                                    {"FAULTS_KIND", kind}}});
    tally.count(fmt::format("{}: {} fails at look {} of {}", scenario.name, kind, point, count),
                spoiled(scenario, expected, place, out, ended));
  }
  return tally;
}

}  // namespace filigree::faults
