// The commands of the campaign, on models of a few kilobytes, and what must hold after any of them
// was interrupted.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/faults/process.h"

namespace filigree::faults {

struct Scenario {
  std::string name;
  // Writes into `out`, which may not be there.
  std::function<Arguments(const fs::path& out)> command;
  // What a user does after an interruption; nothing where the result is there already.
  std::function<Arguments(const fs::path& out)> again;
  // Where not all points are taken, so many times fewer: it takes longer than the others.
  long fewer = 1;
};

// Makes what they all start from (shards, a dense model, a task) below place.scratch.
std::vector<Scenario> make_scenarios(const Place& place);

// What a scenario leaves when nothing goes wrong: the files that two such runs have alike.
struct Expected {
  Tree files;
  std::set<std::string> varying;  // times and the like are in them
};
Expected undisturbed(const Scenario& scenario, const Place& place);

// What is wrong right after an interruption: something that looks whole and is not. "" for nothing.
std::string half_things(const fs::path& out);
// What is wrong when the command has been run again: another result, or things left behind.
std::string differences(const fs::path& out, const Expected& expected);

// Resumes after an interruption and checks before and after; "" when all is well.
std::string recover(const Scenario& scenario, const Place& place, const fs::path& out,
                    const Expected& expected);

}  // namespace filigree::faults
