// The commands of the campaign, on models of a few kilobytes, and what must hold after any of them
// was interrupted.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/faults/process.h"

namespace filigree::faults {

using Command = std::function<Arguments(const fs::path& out)>;

struct Scenario {
  std::string name;
  // Writes into `out`, which may not be there.
  Command command;
  // What a user does after an interruption.
  Command again;
  // Where not all points are taken, so many times fewer: it takes longer than the others.
  long fewer = 1;
  // What the command finds in the folder; null: nothing.
  std::function<void(const fs::path& out)> before = {};
  // What it says, with exit code 1, where the result is there already and is not replaced.
  std::string refuses = {};
  // The same command with another result, for two at once.
  Command rival = {};
  // Folders inside `out` that the command line names, which may be links.
  std::set<std::string> named = {};
  // Its files are named one by one, and nobody holds their folder: each is whole by itself.
  bool one_by_one = false;
  // What is wrong with a result that it says it reached; null: nothing can be.
  std::function<std::string(const fs::path& out)> check = {};
  // Exit code 1 is its answer, with no message beside it.
  bool judges = false;
  // Its input is damaged: whatever happens, it must not succeed.
  bool must_fail = false;
};

// Makes what they all start from (shards, a dense model, a task) below place.scratch.
std::vector<Scenario> make_scenarios(const Place& place);
// Those that only reading can spoil: a run that goes on, and damaged inputs. After
// make_scenarios().
std::vector<Scenario> make_reading_scenarios(const Place& place);
// Two different commands that write the same folder. After make_scenarios().
std::vector<Scenario> make_mixed_pairs(const Place& place);

// The folder that a scenario writes, as its command finds it. Always of the same name, which is in
// the results.
fs::path fresh_folder(const Scenario& scenario, const Place& place);

// What a scenario leaves when nothing goes wrong: the files that two such runs have alike.
struct Expected {
  Tree files;
  std::set<std::string> varying;  // times and the like are in them
  std::set<std::string> names;    // as read_names()
};
Expected undisturbed(const Scenario& scenario, const Place& place);

// What is wrong right after an interruption: something that looks whole and is not. "" for nothing.
std::string half_things(const fs::path& out);
// What is wrong when the command has been run again: another result, or another set of files.
std::string differences(const fs::path& out, const Expected& expected);

// Resumes after an interruption and checks before and after; "" when all is well.
std::string recover(const Scenario& scenario, const Place& place, const fs::path& out,
                    const Expected& expected);

// Whether a run ended as one may that something went wrong for: with success, or with exit code 1
// and a message. "" when it did.
std::string wrong_end(const Scenario& scenario, const Ended& ended);

}  // namespace filigree::faults
