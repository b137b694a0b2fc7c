#include "tests/faults/scenarios.h"

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/model.h"
#include "filigree/train.h"
#include "io/folder_checksums.h"

namespace filigree::faults {
namespace {

// A folder that its configuration calls a model, or a GGUF file in it.
std::string half_model(const fs::path& folder) {
  fs::path model = fs::exists(folder / "config.json") ? folder : fs::path();
  if (model.empty() && fs::exists(folder / "model.gguf")) model = folder / "model.gguf";
  if (model.empty()) return "";
  try {
    load_model(model);
  } catch (const Error& error) {
    return fmt::format("'{}' looks like a model: {}", model.string(), error.what());
  }
  return "";
}

std::string half_run(const fs::path& folder) {
  for (const fs::path& checkpoint : RunFolder::checkpoints_in(folder)) {
    try {
      require_whole(checkpoint, ChecksumDepth::kContents);
    } catch (const std::exception& error) {
      return fmt::format("a checkpoint has its name: {}", error.what());
    }
  }
  return "";
}

// A folder that its configuration calls a transcoder.
std::string half_transcoder(const fs::path& folder) {
  if (!fs::exists(folder / "config.yaml")) return "";
  try {
    require_whole(folder, ChecksumDepth::kContents);
    open_dictionary(folder);
  } catch (const std::exception& error) {
    return fmt::format("'{}' looks like a transcoder: {}", folder.string(), error.what());
  }
  return "";
}

}  // namespace

std::string half_things(const fs::path& out) {
  for (const fs::path& folder : {out, out / "control"})
    for (const auto& half : {half_run, half_model, half_transcoder})
      if (std::string found = half(folder); !found.empty()) return found;
  if (fs::exists(out / kShardIndexFile)) try {
      TokenShards::open(out);
    } catch (const Error& error) {
      return fmt::format("shards have an index: {}", error.what());
    }
  return "";
}

fs::path fresh_folder(const Scenario& scenario, const Place& place) {
  const fs::path out = place.scratch / "out" / scenario.name;
  fs::remove_all(out);
  fs::create_directories(out);
  if (scenario.before) scenario.before(out);
  return out;
}

Expected undisturbed(const Scenario& scenario, const Place& place) {
  Expected expected;
  if (scenario.must_fail) return expected;
  Tree trees[2];
  for (Tree& tree : trees) {
    const fs::path out = fresh_folder(scenario, place);
    const Ended ended = place.run({scenario.command(out)});
    require(ended.did_its_work(), "{}: ended with {}: {}", scenario.name, ended.code, ended.said);
    tree = read_tree(out);
    expected.names = read_names(out);
  }
  require(!trees[0].empty(), "{}: left no files", scenario.name);
  for (const auto& [name, bytes] : trees[0])
    if (trees[1].at(name) != bytes) expected.varying.insert(name);
  expected.files = trees[0];
  return expected;
}

std::string differences(const fs::path& out, const Expected& expected) {
  const std::set<std::string> names = read_names(out);
  // Locks of a cache stay where they were taken, and where nothing was to be fetched none was.
  const auto is_lock = [](const std::string& name) { return name.starts_with(".locks/"); };
  for (const std::string& name : expected.names)
    if (!names.contains(name) && !is_lock(name)) return fmt::format("'{}' is not there", name);
  for (const std::string& name : names)
    if (!expected.names.contains(name)) return fmt::format("'{}' was left behind", name);
  const Tree found = read_tree(out);
  for (const auto& [name, bytes] : expected.files)
    if (!is_lock(name) && found.at(name) != bytes && !expected.varying.contains(name) &&
        fs::path(name).filename() != "result.json")  // says where it was resumed
      return fmt::format("'{}' differs", name);
  return "";
}

std::string recover(const Scenario& scenario, const Place& place, const fs::path& out,
                    const Expected& expected) {
  if (std::string half = half_things(out); !half.empty()) return half;
  const Ended ended = place.run({scenario.again(out)});
  const bool was_there = !scenario.refuses.empty() && ended.code == 1 &&
                         ended.said.find(scenario.refuses) != std::string::npos;
  if (!ended.did_its_work() && !was_there)
    return fmt::format("run again, it ended with {}{}: {}", ended.code,
                       ended.timed_out ? " after too long" : "", ended.said);
  return differences(out, expected);
}

std::string wrong_end(const Scenario& scenario, const Ended& ended) {
  if (ended.timed_out) return "it went on for too long";
  if (ended.signal != 0) return fmt::format("signal {}: {}", ended.signal, ended.said);
  // A fault that does no harm may be passed over.
  if (ended.did_its_work()) return "";
  if (ended.code != 1) return fmt::format("exit code {}: {}", ended.code, ended.said);
  if (scenario.judges && ended.said.empty()) return "";
  if (ended.said.find("filigree: ") == std::string::npos ||
      ended.said.find("unexpected failure") != std::string::npos)
    return "no clean message: " + ended.said;
  return "";
}

}  // namespace filigree::faults
