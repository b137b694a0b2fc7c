#include <fmt/format.h>

#include "tests/faults/parts.h"

namespace filigree::faults {
namespace {

// What links lead to, and what there was before.
class Outside {
 public:
  explicit Outside(const Place& place) : at_(place.scratch / "outside") {
    fs::remove_all(at_);
    fs::create_directories(at_ / "folder");
    write_tree(at_, {{"precious", "text"}, {"folder/precious", "text"}});
    names_ = read_names(at_);
    files_ = read_tree(at_);
  }

  // In the place of a file or, with a slash at its end, of a folder; what was there goes.
  void link(const fs::path& out, std::string name, bool dangling) const {
    const bool folder = name.ends_with('/');
    if (folder) name.pop_back();
    fs::create_directories((out / name).parent_path());
    fs::remove_all(out / name);
    if (folder)
      fs::create_directory_symlink(at_ / (dangling ? "nowhere" : "folder"), out / name);
    else
      fs::create_symlink(at_ / (dangling ? "nothing" : "precious"), out / name);
  }

  std::string changed() const {
    if (read_names(at_) != names_) return "something was made or removed outside";
    return read_tree(at_) == files_ ? "" : "a file outside was written to";
  }

 private:
  fs::path at_;
  std::set<std::string> names_;
  Tree files_;
};

std::string run_among_links(const Scenario& scenario, const Expected& expected, const Place& place,
                            const std::vector<std::string>& names, bool dangling) {
  const fs::path out = fresh_folder(scenario, place);
  const Outside outside(place);
  for (const std::string& name : names) outside.link(out, name, dangling);
  for (const Command& command : {scenario.command, scenario.again}) {
    const Ended ended = place.run({command(out)});
    if (std::string wrong = wrong_end(scenario, ended); !wrong.empty()) return wrong;
    if (std::string changed = outside.changed(); !changed.empty()) return changed;
    if (ended.did_its_work()) return differences(out, expected);
  }
  return "";
}

}  // namespace

Tally plant_links(const Scenario& scenario, const Expected& expected, const Place& place,
                  Points points) {
  Tally tally;
  std::vector<std::vector<std::string>> sets(1);
  // What the command found there is what it reads.
  std::set<std::string> there = read_names(fresh_folder(scenario, place));
  there.insert(scenario.named.begin(), scenario.named.end());
  for (const std::string& entry : expected.names) {
    // A link of the result is a file to who looks for it.
    const std::string name = entry.substr(0, entry.find(" -> "));
    if (there.contains(name)) continue;
    sets.push_back({name});
    if (!name.ends_with('/')) sets[0].push_back(name);
  }
  for (auto i = static_cast<std::size_t>(points.first - 1); i < sets.size();
       i += static_cast<std::size_t>(points.stride))
    for (const bool dangling : {false, true})
      tally.count(fmt::format("{}: {} link in the place of {}", scenario.name,
                              dangling ? "a dangling" : "a",
                              i == 0 ? "every file" : "'" + sets[i][0] + "'"),
                  run_among_links(scenario, expected, place, sets[i], dangling));
  return tally;
}

}  // namespace filigree::faults
