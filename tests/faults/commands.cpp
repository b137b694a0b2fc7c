// The commands that write, as small as they can be.
#include <cstdlib>
#include <memory>

#include "filigree/error.h"
#include "json/json.h"
#include "support/fake_hub.h"
#include "support/test_task.h"
#include "tests/faults/scenarios.h"

namespace filigree::faults {
namespace {

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Arguments kCommon = {"--quiet", "--threads", "1"};
const Arguments kDrawing = {"--set", "dpi=40"};  // large pictures take long
const Arguments kSmallRun = {"--steps",
                             "4",
                             "--batch",
                             "2",
                             "--set",
                             "log-every=1",
                             "--checkpoint-every",
                             "2",
                             "--set",
                             "evaluate-every=2",
                             "--set",
                             "held-out-tokens=64"};
const Arguments kShape = {"--layers", "1", "--layer-heads", "2", "--width", "8", "--context", "16"};
const Arguments kFeatures = {"--layer-features", "8",   "--l0",  "2",
                             "--tokens",         "128", "--set", "held-out-tokens=64",
                             "--batch",          "32",  "--set", "pool=64"};
const Arguments kOther = {"--seed", "1"};
const std::string kModelIsThere = "holds a model already";

void expect_success(const Place& place, const Arguments& arguments) {
  const Ended ended = place.run({arguments + kCommon});
  require(ended.did_its_work(), "setting up: filigree {} ended with {}: {}", arguments[0],
          ended.code, ended.said);
}

// What they all start from, below place.scratch.
struct Inputs {
  explicit Inputs(fs::path scratch) : at(std::move(scratch)) {}
  std::string operator[](const char* name) const { return (at / name).string(); }

  fs::path at;
  // A model that can do a task, on prompts enough to tell.
  std::shared_ptr<ModelFolder> able = std::make_shared<ModelFolder>();
};

void make_inputs(const Place& place, const Inputs& in) {
  expect_success(place, {"task", "corpus", "--documents", "60", "--out", in["text.txt"]});
  expect_success(place, {"prepare", in["text.txt"], "--vocab", "270", "--set", "held-out-share=0.2",
                         "--out", in["shards"]});
  expect_success(place, Arguments{"pretrain", in["shards"], "--out", in["dense"]} + kShape +
                            Arguments{"--steps", "2", "--batch", "2"});
  expect_success(place, {"sparsify", in["dense"], in["shards"], "--out", in["sparse"], "--steps",
                         "2", "--batch", "2"});
  expect_success(
      place, Arguments{"features", "train", in["dense"], in["shards"], "--out", in["features"]} +
                 kFeatures);
  expect_success(place, {"features", "index", in["dense"], in["features"], "--data", in["shards"],
                         "--out", in["index"]});
  write_own_task(*in.able, in["task.jsonl"], 12);
  in.able->gated(in["gated"], {{-0.1f}});
}

// One whose rival has `other` added to its options, and which is repeated with `more`.
Scenario repeated(std::string name, const Command& command, const Arguments& other,
                  const Arguments& more = {}) {
  return {.name = std::move(name),
          .command = [=](const fs::path& out) { return command(out) + kCommon; },
          .again = [=](const fs::path& out) { return command(out) + more + kCommon; },
          .rival = [=](const fs::path& out) { return command(out) + other + kCommon; }};
}

// One that replaces nothing, and says so.
Scenario once(std::string name, const Command& command, const Arguments& other,
              std::string refuses) {
  Scenario scenario = repeated(std::move(name), command, other);
  scenario.refuses = std::move(refuses);
  return scenario;
}

void add_models(const Inputs& in, std::vector<Scenario>& all) {
  const Arguments keep_one = {"--set", "keep=1"};
  all.push_back(repeated(
      "pretrain",
      [=](const fs::path& out) {
        return Arguments{"pretrain", in["shards"], "--out", out} + kShape + kSmallRun + keep_one;
      },
      kOther, {"--resume"}));
  all.push_back(repeated("sparsify",
                         [=](const fs::path& out) {
                           return Arguments{"sparsify", in["dense"], in["shards"],  "--out",
                                            out,        "--control", "--lora-rank", "2"} +
                                  kSmallRun + keep_one;
                         },
                         kOther, {"--resume"}));
  all.push_back(once(
      "convert",
      [=](const fs::path& out) {
        return Arguments{"convert", in["dense"], "--out", out};
      },
      {"--dtype", "bf16"}, kModelIsThere));
  all.push_back(once(
      "convert-gguf",
      [=](const fs::path& out) {
        return Arguments{"convert", in["dense"], "--out", out / "model.gguf"};
      },
      {"--dtype", "bf16"}, "is there already"));
  all.push_back(once(
      "gates",
      [=](const fs::path& out) {
        return Arguments{"gates", "close",        in["sparse"], "--data", in["shards"], "--edges",
                         "0.2",   "--max-tokens", "64",         "--out",  out};
      },
      {"--dtype", "bf16"}, kModelIsThere));
  Scenario verify = repeated("verify",
                             [](const fs::path& out) {
                               return Arguments{"info", out, "--checksums", "write"};
                             },
                             {});
  verify.before = [in](const fs::path& out) {
    fs::copy(in["dense"], out, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    fs::remove(out / "checksums.json");
  };
  verify.rival = nullptr;  // there is one result
  verify.judges = true;
  all.push_back(std::move(verify));
}

void add_texts(const Inputs& in, std::vector<Scenario>& all) {
  all.push_back(repeated("prepare",
                         [=](const fs::path& out) {
                           return Arguments{"prepare", in["text.txt"],
                                            "--vocab", "270",
                                            "--set",   "held-out-share=0.2",
                                            "--set",   "shard-tokens=2000",
                                            "--out",   out};
                         },
                         kOther, {"--force"}));
}

void add_transcoders(const Inputs& in, std::vector<Scenario>& all) {
  all.push_back(repeated(
      "features-train",
      [=](const fs::path& out) {
        return Arguments{"features", "train", in["dense"], in["shards"], "--out", out} + kFeatures +
               Arguments{"--set", "log-every=1", "--checkpoint-every", "2", "--set", "keep=1"};
      },
      kOther, {"--resume"}));
  all.push_back(repeated("features-index",
                         [=](const fs::path& out) {
                           return Arguments{"features", "index",      in["dense"], in["features"],
                                            "--data",   in["shards"], "--out",     out / "index",
                                            "--export", out / "pages"};
                         },
                         {"--context", "8"}));
  all.back().named = {"pages/"};
  all.push_back(once(
      "features-convert",
      [=](const fs::path& out) {
        return Arguments{"convert", in["features"], "--out", out};
      },
      {"--dtype", "i8"}, "holds a transcoder already"));
}

void add_analyses(const Inputs& in, std::vector<Scenario>& all) {
  all.push_back(repeated("circuit",
                         [=](const fs::path& out) {
                           return Arguments{"circuit", in.able->name(), "--task", in["task.jsonl"],
                                            "--state", out / "state",   "--out",  out / "files"} +
                                  kDrawing;
                         },
                         {"--level", "0.8"}));
  all.back().fewer = 3;  // it draws
  all.back().named = {"files/"};
  all.push_back(repeated("compare",
                         [=](const fs::path& out) {
                           return Arguments{"compare",     in["dense"], in["sparse"], "--prompt",
                                            "the cat sat", "--out",     out} +
                                  kDrawing;
                         },
                         {"--title", "other"}));
  all.back().fewer = 5;
  all.push_back(repeated("demo",
                         [=](const fs::path& out) {
                           return Arguments{"demo",     in.able->name(), in["gated"],
                                            "--text",   in["text.txt"],  "--max-tokens",
                                            "64",       "--task",        in["task.jsonl"],
                                            "--format", "svg",           "--out",
                                            out};
                         },
                         {"--max-tokens", "48"}));
  all.back().fewer = 20;
  all.push_back(
      repeated("trace",
               [=](const fs::path& out) {
                 Arguments trace = {"trace",   in["dense"], "--features", in["features"],
                                    "--index", in["index"], "--prompt",   "the cat sat"};
                 for (const char* name : {"graph.json", "graph.dot", "graph.npz", "heads.svg"})
                   trace = trace + Arguments{"--out", out / name};
                 return trace;
               },
               {"--target", "a"}));
  all.back().one_by_one = true;
}

// Commands of one file, or of several that are named one by one.
void add_files(const Inputs& in, std::vector<Scenario>& all) {
  const auto add = [&](const char* name, const Command& command, const Arguments& other) {
    all.push_back(repeated(name, command, other));
    all.back().one_by_one = true;
    all.back().fewer = 2;
  };
  add(
      "corpus",
      [](const fs::path& out) {
        return Arguments{"task", "corpus", "--documents", "20", "--out", out / "text.txt"};
      },
      kOther);
  add("attention",
      [=](const fs::path& out) {
        Arguments attention = {"attention", in["dense"], "--prompt", "the cat sat"};
        for (const char* name :
             {"maps.npz", "maps.safetensors", "maps.json", "maps.csv", "maps.svg"})
          attention = attention + Arguments{"--out", out / name};
        return attention;
      },
      {"--what", "scores"});
  add("run",
      [=](const fs::path& out) {
        return Arguments{"run",   in["dense"], "--prompt", "the cat sat",
                         "--tap", "*",         "--out",    out / "taps.npz"};
      },
      {"--ablate", "L0H0"});
  add("lens",
      [=](const fs::path& out) {
        return Arguments{"lens", in["dense"], "--prompt", "the cat sat", "--out", out / "lens.pdf"};
      },
      {"--theme", "dark"});
  add("patch",
      [=](const fs::path& out) {
        return Arguments{"patch",          in.able->name(), "--task",
                         in["task.jsonl"], "--out",         out / "heads.png"} +
               kDrawing;
      },
      {"--theme", "dark"});
  add("curves",
      [=](const fs::path& out) {
        return Arguments{"info", in["dense"], "--out", out / "curves.svg"};
      },
      {"--theme", "dark"});
  add("features-show",
      [=](const fs::path& out) {
        return Arguments{"features", "show",      in["dense"], in["features"],      "L0F1",
                         "--index",  in["index"], "--out",     out / "feature.html"};
      },
      {"--top", "3"});
}

// A hub on this machine, for as long as the campaign takes; the cache is the folder that is
// written.
void add_downloads(const Place& place, const Inputs& in, std::vector<Scenario>& all) {
  static FakeHub hub("org/tiny");
  for (const fs::directory_entry& entry : fs::directory_iterator(in["dense"])) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file())
      hub.set_file(name, read_tree(in["dense"]).at(name), name.ends_with(".safetensors"));
  }
  ::setenv("HF_ENDPOINT", hub.endpoint().c_str(), 1);
  ::setenv("HF_HUB_CACHE", (place.scratch / "out" / "fetch").c_str(), 1);
  all.push_back(repeated("fetch",
                         [](const fs::path&) {
                           return Arguments{"fetch", "org/tiny"};
                         },
                         {}));
  all.back().rival = nullptr;  // there is one result
}

// A run of 4 steps of which 2 are done.
void half_done(const Place& place, const Command& command, const fs::path& at) {
  expect_success(place, command(at) + Arguments{"--set", "keep=2"});
  fs::remove_all(at / "checkpoints/step-00000004");
  for (const char* file : {"config.json", "model.safetensors", "checksums.json", "result.json"})
    fs::remove(at / file);
}

std::string not_resumed(const fs::path& out) {
  const nlohmann::json result = read_json(out / "result.json");
  return result["resumed_from"] == 2 ? "" : "it did not go on from the checkpoint of step 2";
}

}  // namespace

std::vector<Scenario> make_scenarios(const Place& place) {
  const Inputs in(place.scratch);
  make_inputs(place, in);
  std::vector<Scenario> all;
  add_models(in, all);
  add_texts(in, all);
  add_transcoders(in, all);
  add_analyses(in, all);
  add_files(in, all);
  add_downloads(place, in, all);
  return all;
}

std::vector<Scenario> make_reading_scenarios(const Place& place) {
  const Inputs in(place.scratch);
  const Command pretrain = [=](const fs::path& out) {
    return Arguments{"pretrain", in["shards"], "--out", out} + kShape + kSmallRun;
  };
  half_done(place, pretrain, in["half-done"]);
  Scenario resume = repeated("resume", pretrain, {});
  resume.command = resume.again = [=](const fs::path& out) {
    return pretrain(out) + Arguments{"--set", "keep=2", "--resume"} + kCommon;
  };
  resume.before = [=](const fs::path& out) {
    fs::copy(in["half-done"], out,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  };
  resume.check = not_resumed;

  fs::copy(in["dense"], in["damaged"]);
  Tree files = read_tree(in["damaged"]);
  std::string& weights = files.at("model.safetensors");
  weights[weights.size() - 2] ^= 1;
  write_tree(in["damaged"], files);
  Scenario convert = repeated("damaged-convert",
                              [=](const fs::path& out) {
                                return Arguments{"convert", in["damaged"], "--out", out};
                              },
                              {});
  Scenario verify = repeated("damaged-verify",
                             [=](const fs::path&) {
                               return Arguments{"info", in["damaged"], "--checksums", "check"};
                             },
                             {});
  convert.must_fail = verify.must_fail = verify.judges = true;
  return {resume, convert, verify};
}

std::vector<Scenario> make_mixed_pairs(const Place& place) {
  const Inputs in(place.scratch);
  const Command pretrain = [=](const fs::path& out) {
    return Arguments{"pretrain", in["shards"], "--out", out} + kShape + kSmallRun + kCommon;
  };
  const auto beside = [&](const char* name, const Arguments& more) {
    return Scenario{
        .name = name, .command = pretrain, .again = pretrain, .rival = [=](const fs::path& out) {
          return more + Arguments{"--out", out} + kCommon;
        }};
  };
  return {beside("pretrain-convert", {"convert", in["sparse"], "--dtype", "bf16"}),
          beside("pretrain-features",
                 Arguments{"features", "train", in["dense"], in["shards"]} + kFeatures)};
}

}  // namespace filigree::faults
