// Parts of the campaign beside the interruptions of campaign.cpp.
#pragma once

#include "tests/faults/scenarios.h"

namespace filigree::faults {

struct Tally {
  long runs = 0, failures = 0;

  void count(const std::string& where, const std::string& problem);
};

// The points of a series that are tried: every `stride`-th, beginning at `first`.
struct Points {
  long first = 1, stride = 1;
};

// Each look at a file fails once (`kind` "read"), or it and all that come after it ("reads"): the
// command must end with a message, or with the result that it has without. `count` is told first.
long count_looks(const Scenario& scenario, const Place& place);
Tally fail_reads(const Scenario& scenario, const Expected& expected, const Place& place,
                 const std::string& kind, long count, Points points);

// Two at once in one folder, `rounds` times: what is left is the result of one of them, or, where
// both say that they succeeded, of the one that came later.
Tally two_writers(const Scenario& scenario, const Expected& expected, const Place& place,
                  long rounds);

// Links in the place of every file and of every folder of the result, one at a time and all at
// once, to files that are there and to none: nothing outside the folder may change.
Tally plant_links(const Scenario& scenario, const Expected& expected, const Place& place,
                  Points points);

}  // namespace filigree::faults
