#include "tests/faults/scenarios.h"

#include <memory>

#include "filigree/base/error.h"
#include "filigree/features/files/transcoder_files.h"
#include "filigree/io/folder_checksums.h"
#include "filigree/model/model.h"
#include "filigree/text/token_shards.h"
#include "filigree/train/checkpoint.h"
#include "support/test_task.h"

namespace filigree::faults {
namespace {

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Arguments kCommon = {"--quiet", "--threads", "1"};
const Arguments kDrawing = {"--dpi", "40"};  // large pictures take long

void expect_success(const Place& place, const Arguments& arguments) {
  const Ended ended = place.run({arguments + kCommon});
  require(ended.code == 0, "setting up: filigree {} ended with {}: {}", arguments[0], ended.code,
          ended.said);
}

Scenario repeated(std::string name, std::function<Arguments(const fs::path&)> command,
                  const Arguments& more) {
  return {std::move(name), command,
          [command, more](const fs::path& out) { return command(out) + more; }};
}

// A folder that its configuration calls a model.
std::string half_model(const fs::path& folder) {
  if (!fs::exists(folder / "config.json")) return "";
  try {
    load_model(folder);
  } catch (const Error& error) {
    return fmt::format("'{}' looks like a model: {}", folder.string(), error.what());
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

bool is_left_behind(const std::string& name) {
  return name.find(".partial") != std::string::npos || name.find(".removed") != std::string::npos ||
         name.ends_with("/lock") || name == "lock";
}

}  // namespace

std::vector<Scenario> make_scenarios(const Place& place) {
  const fs::path at = place.scratch;
  const auto path = [at](const char* name) { return (at / name).string(); };
  expect_success(place, {"corpus", "--documents", "60", "--out", path("text.txt")});
  expect_success(place, {"prepare", path("text.txt"), "--vocab", "270", "--held-out-share", "0.2",
                         "--out", path("shards")});
  const Arguments small = {
      "--steps",          "4", "--batch", "2", "--log-every",       "1", "--checkpoint-every", "2",
      "--evaluate-every", "2", "--keep",  "1", "--held-out-tokens", "64"};
  const Arguments shape = {"--layers", "1", "--layer-heads", "2",
                           "--width",  "8", "--context",     "16"};
  expect_success(place, Arguments{"pretrain", path("shards"), "--out", path("dense")} + shape +
                            Arguments{"--steps", "2", "--batch", "2"});
  expect_success(place, Arguments{"sparsify", path("dense"), path("shards"), "--out",
                                  path("sparse"), "--steps", "2", "--batch", "2"});
  // A task that its model can do, on prompts enough to tell.
  const auto able = std::make_shared<ModelFolder>();
  write_own_task(*able, path("task.jsonl"), 12);
  std::vector<Scenario> all;
  all.push_back(repeated("pretrain",
                         [=](const fs::path& out) {
                           return Arguments{"pretrain", path("shards"), "--out", out.string()} +
                                  shape + small + kCommon;
                         },
                         {"--resume"}));
  all.push_back(repeated("sparsify",
                         [=](const fs::path& out) {
                           return Arguments{"sparsify",   path("dense"), path("shards"), "--out",
                                            out.string(), "--control",   "--lora-rank",  "2"} +
                                  small + kCommon;
                         },
                         {"--resume"}));
  all.push_back(repeated(
      "prepare",
      [=](const fs::path& out) {
        return Arguments{"prepare", path("text.txt"), "--vocab", "270",   "--held-out-share",
                         "0.2",     "--shard-tokens", "2000",    "--out", out.string()} +
               kCommon;
      },
      {"--force"}));
  const auto convert = [=](const fs::path& out) {
    return Arguments{"convert", path("dense"), "--dtype", "bf16", "--out", out.string()} + kCommon;
  };
  all.push_back({"convert", convert, [convert](const fs::path& out) {
                   // It replaces no model; one that is there must be the result.
                   return fs::exists(out / "config.json") ? Arguments() : convert(out);
                 }});
  all.push_back(repeated("circuit",
                         [=](const fs::path& out) {
                           return Arguments{"circuit", able->name(),
                                            "--task",  path("task.jsonl"),
                                            "--state", (out / "state").string(),
                                            "--out",   (out / "files").string()} +
                                  kDrawing + kCommon;
                         },
                         {}));
  all.back().fewer = 3;  // it draws
  all.push_back(repeated("compare",
                         [=](const fs::path& out) {
                           return Arguments{"compare",   path("dense"), path("sparse"),
                                            "--prompt",  "the cat sat", "--out",
                                            out.string()} +
                                  kDrawing + kCommon;
                         },
                         {}));
  all.back().fewer = 5;
  const Arguments features = {"--layer-features",  "8",  "--l0",    "2",  "--tokens", "128",
                              "--held-out-tokens", "64", "--batch", "32", "--pool",   "64"};
  const auto train_features = [=](const fs::path& out) {
    return Arguments{"features", "train", path("dense"), path("shards"), "--out", out.string()} +
           features;
  };
  expect_success(place, train_features(at / "features"));
  all.push_back(repeated(
      "features-train",
      [=](const fs::path& out) {
        return train_features(out) +
               Arguments{"--log-every", "1", "--checkpoint-every", "2", "--keep", "1"} + kCommon;
      },
      {"--resume"}));
  all.push_back(repeated("features-index",
                         [=](const fs::path& out) {
                           return Arguments{"features",    "index",
                                            path("dense"), path("features"),
                                            "--data",      path("shards"),
                                            "--out",       (out / "index").string(),
                                            "--export",    (out / "pages").string()} +
                                  kCommon;
                         },
                         {}));
  const auto convert_features = [=](const fs::path& out) {
    return Arguments{"features", "convert", path("features"),     "--dtype",
                     "i8",       "--out",   (out / "i8").string()} +
           kCommon;
  };
  all.push_back({"features-convert", convert_features, [convert_features](const fs::path& out) {
                   return fs::exists(out / "i8" / "config.yaml") ? Arguments()
                                                                 : convert_features(out);
                 }});
  all.push_back(
      repeated("trace",
               [=](const fs::path& out) {
                 Arguments trace = {"trace",          path("dense"), "--features",
                                    path("features"), "--prompt",    "the cat sat"};
                 for (const char* name : {"graph.json", "graph.dot", "graph.npz", "heads.svg"})
                   trace = trace + Arguments{"--out", (out / name).string()};
                 return trace + kCommon;
               },
               {}));
  return all;
}

std::string half_things(const fs::path& out) {
  for (const fs::path& folder : {out, out / "control", out / "i8"})
    for (const auto& half : {half_run, half_model, half_transcoder})
      if (std::string found = half(folder); !found.empty()) return found;
  if (fs::exists(out / kShardIndexFile)) try {
      TokenShards::open(out);
    } catch (const Error& error) {
      return fmt::format("shards have an index: {}", error.what());
    }
  return "";
}

Expected undisturbed(const Scenario& scenario, const Place& place) {
  Expected expected;
  Tree trees[2];
  // Both in the same folder: names may be in the results.
  const fs::path out = place.scratch / "out" / scenario.name;
  for (Tree& tree : trees) {
    fs::remove_all(out);
    fs::create_directories(out);
    const Ended ended = place.run({scenario.command(out)});
    require(ended.code == 0, "{}: ended with {}: {}", scenario.name, ended.code, ended.said);
    tree = read_tree(out);
  }
  require(!trees[0].empty(), "{}: left no files", scenario.name);
  for (const auto& [name, bytes] : trees[0])
    if (trees[1].at(name) != bytes) expected.varying.insert(name);
  expected.files = trees[0];
  return expected;
}

std::string differences(const fs::path& out, const Expected& expected) {
  const Tree found = read_tree(out);
  for (const auto& [name, bytes] : expected.files) {
    const auto same = found.find(name);
    if (same == found.end()) return fmt::format("'{}' is not there", name);
    if (same->second != bytes && !expected.varying.contains(name) &&
        fs::path(name).filename() != "result.json")  // says where it was resumed
      return fmt::format("'{}' differs", name);
  }
  for (const auto& [name, bytes] : found)
    if (is_left_behind(name)) return fmt::format("'{}' was left behind", name);
  return "";
}

std::string recover(const Scenario& scenario, const Place& place, const fs::path& out,
                    const Expected& expected) {
  if (std::string half = half_things(out); !half.empty()) return half;
  if (const Arguments again = scenario.again(out); !again.empty()) {
    const Ended ended = place.run({again});
    if (ended.code != 0 && ended.code != 3)
      return fmt::format("run again, it ended with {}{}: {}", ended.code,
                         ended.timed_out ? " after too long" : "", ended.said);
  }
  return differences(out, expected);
}

}  // namespace filigree::faults
