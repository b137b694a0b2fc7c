// Models of the hub: fetched by the one command that asks the network, and opened by all others
// from the cache alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/model.h"
#include "filigree/study.h"
#include "support/fake_hub.h"
#include "support/files.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Arguments = std::vector<std::string>;

class HubModels : public ::testing::Test {
 protected:
  HubModels() : hub_("org/tiny") {
    for (const fs::directory_entry& entry : fs::directory_iterator(model_.path())) {
      const std::string name = entry.path().filename();
      hub_.set_file(name, read_file(entry.path()), name.ends_with(".safetensors"));
    }
    ::setenv("HF_HUB_CACHE", cache().c_str(), 1);
    ::setenv("HF_ENDPOINT", hub_.endpoint().c_str(), 1);
    ::unsetenv("HF_TOKEN");
    ::unsetenv("HF_HUB_OFFLINE");
  }
  ~HubModels() override {
    for (const char* variable : {"HF_HUB_CACHE", "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE"})
      ::unsetenv(variable);
  }

  fs::path cache() const { return scratch_.path() / "cache"; }
  fs::path repository() const { return cache() / "models--org--tiny"; }
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  void fetch_it() {
    const ProgramRun run = run_program({"fetch", "org/tiny", "--quiet"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    hub_.hub().forget();
    hub_.store().forget();
  }
  static void expect_success(const Arguments& arguments, int code = 0) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << arguments[0] << ": " << run.err;
  }
  std::size_t requests() { return hub_.hub().requests().size() + hub_.store().requests().size(); }

  const ModelFolder model_;
  const ScratchFolder scratch_;
  FakeHub hub_;
};

TEST_F(HubModels, FetchSaysWhatItBrought) {
  const ProgramRun run = run_program({"fetch", "org/tiny", "--json", "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  const nlohmann::json json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["model"], "org/tiny");
  EXPECT_EQ(json["revision"], "main");
  EXPECT_EQ(json["commit"], FakeHub::kCommit);
  EXPECT_EQ(json["folder"], (repository() / "snapshots" / FakeHub::kCommit).string());
  EXPECT_EQ(json["bytes"], json["downloaded_bytes"]);
  EXPECT_EQ(json["files"][0]["file"], "config.json");
  EXPECT_EQ(json["files"][0]["checksum"], "git");
  const ProgramRun again = run_program({"fetch", "org/tiny"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, AllOf(HasSubstr("was there"), HasSubstr("0 B of it downloaded now"),
                               Not(HasSubstr("SHA-256 right"))));
}

TEST_F(HubModels, EveryCommandTakesAName) {
  fetch_it();
  std::ofstream(path("text.txt")) << "The cat sat on the mat. The dog sat on the cat.\n";
  expect_success({"info", "org/tiny"});
  expect_success({"info", std::string("org/tiny@") + FakeHub::kCommit, "--show", "taps"});
  expect_success({"info", "org/tiny", "--prompt", "a cat"});
  expect_success({"info", "org/tiny", "--checksums", "check"}, 3);
  expect_success({"generate", "org/tiny", "--prompt", "a cat", "--max-tokens", "2"});
  expect_success({"run", "org/tiny", "--prompt", "a cat"});
  expect_success({"convert", "org/tiny", "--out", path("copy")});
  expect_success({"prepare", path("text.txt"), "--tokenizer", "org/tiny", "--set",
                  "held-out-share=0", "--out", path("shards")});
  expect_success({"sparsify", "org/tiny", path("shards"), "--out", path("run"), "--steps", "1",
                  "--context", "4", "--batch", "1"});
  expect_success({"eval", "org/tiny", "--text", path("text.txt")});
  expect_success({"attention", "org/tiny", "org/tiny", "--prompt", "a cat", "--show", "roles"});
  expect_success({"task", "show", "org/tiny", "pronoun", "--prompts", "2"});
  expect_success({"lens", "org/tiny", "--prompt", "a cat"});
  expect_success({"head", "org/tiny"});
  expect_success({"compare", "org/tiny", "org/tiny", "--out", path("out"), "--prompt", "a cat",
                  "--format", "svg"});
  EXPECT_EQ(requests(), 0u);
  // What is opened is what was fetched, and it stays as it was.
  EXPECT_EQ(load_model(study::model_folder("org/tiny"))->config().width, 32);
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(repository() / "snapshots"))
    EXPECT_TRUE(entry.is_directory() || entry.is_symlink()) << entry.path();
}

TEST_F(HubModels, AFileOfARepositoryIsAModel) {
  expect_success({"convert", model_.name(), "--out", path("tiny.gguf"), "--dtype", "f16"});
  hub_.set_file("q/tiny.gguf", read_file(path("tiny.gguf")), true);
  expect_success({"fetch", "org/tiny:q/tiny.gguf"});
  expect_success({"generate", "org/tiny:q/tiny.gguf", "--prompt", "a cat", "--max-tokens", "2"});
  expect_success({"info", "org/tiny:q/tiny.gguf", "--prompt", "a cat"});
}

// Its base is looked up by the name that it gives.
TEST_F(HubModels, AnAdapterIsOneToo) {
  fetch_it();
  const fs::path adapters =
      fs::path(FILIGREE_SOURCE_DIR) / "tests" / "golden" / "peft" / "gpt2-fused";
  FakeHub other("org/adapter");
  nlohmann::json config = nlohmann::json::parse(read_file(adapters / "adapter_config.json"));
  config["base_model_name_or_path"] = "org/absent";
  other.set_file("adapter_config.json", config.dump());
  other.set_file("adapter_model.safetensors", read_file(adapters / "adapter_model.safetensors"),
                 true);
  ::setenv("HF_ENDPOINT", other.endpoint().c_str(), 1);
  expect_success({"fetch", "org/adapter"});
  const ProgramRun run = run_program({"run", "org/adapter", "--ids", "1,2"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("filigree fetch org/absent"));
  // Made for another shape, so that it was found and read.
  EXPECT_THAT(run_program({"run", "org/tiny", "--adapter", "org/adapter", "--ids", "1,2"}).err,
              HasSubstr("adapter"));
}

TEST_F(HubModels, AFolderOfTheNameComesFirst) {
  fetch_it();
  const ProgramRun run = run_shell("cd '" + scratch_.path().string() +
                                   "' && mkdir -p org/tiny && \"$FILIGREE\" info org/tiny");
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("org/tiny/config.json"));
}

// Nothing but fetch asks the network, however much is missing.
TEST_F(HubModels, NothingIsDownloadedUnasked) {
  std::ofstream(path("text.txt")) << "The cat sat on the mat.\n";
  const std::vector<Arguments> commands = {
      {"info", "org/tiny"},
      {"info", "org/tiny", "--prompt", "a"},
      {"generate", "org/tiny", "--prompt", "a"},
      {"run", "org/tiny", "--prompt", "a"},
      {"convert", "org/tiny", "--out", path("copy")},
      {"prepare", path("text.txt"), "--tokenizer", "org/tiny", "--out", path("shards")},
      {"pretrain", path("text.txt"), "--config", "org/tiny", "--out", path("run")},
      {"sparsify", "org/tiny", path("shards"), "--out", path("run")},
      {"gates", "raise", "org/tiny", "--add", "1", "--out", path("raised")},
      {"eval", "org/tiny", "--text", path("text.txt")},
      {"attention", "org/tiny", "--prompt", "a"},
      {"attention", model_.name(), "org/tiny", "--prompt", "a"},
      {"compare", "org/tiny", model_.name(), "--out", path("out"), "--prompt", "a"},
      {"task", "show", "org/tiny", "pronoun"},
      {"circuit", "org/tiny", "--task", "pronoun"},
      {"patch", "org/tiny", "--task", "pronoun"},
      {"lens", "org/tiny", "--prompt", "a"},
      {"head", "org/tiny"},
      {"trace", "org/tiny", "--prompt", "a"},
      {"features", "show", "org/tiny", "no-features", "L0F1"},
      {"bench", "org/tiny"},
      {"serve", "org/tiny"}};
  for (const Arguments& arguments : commands) {
    const ProgramRun run = run_program(arguments);
    EXPECT_NE(run.code, 0) << arguments[0];
    // What else is missing may be said first.
    if (arguments[0] == "sparsify" || arguments[0] == "bench" || arguments[0] == "pretrain")
      continue;
    EXPECT_THAT(run.err, HasSubstr("filigree fetch org/tiny")) << arguments[0];
  }
  EXPECT_THAT(run_program({"info", "gpt2-of-nobody"}).err,
              HasSubstr("filigree fetch gpt2-of-nobody"));
  EXPECT_EQ(requests(), 0u);
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(HubModels, WhatTheCacheLacksIsSaid) {
  fetch_it();
  EXPECT_THAT(
      run_program({"info", "org/tiny@v2"}).err,
      AllOf(HasSubstr("it has the revision main"), HasSubstr("filigree fetch org/tiny@v2")));
  EXPECT_THAT(run_program({"info", "org/tiny", "--checksums", "write"}).err,
              HasSubstr("lies in the cache of the Hugging Face hub"));
  fs::remove(repository() / "snapshots" / FakeHub::kCommit / "model.safetensors");
  const ProgramRun part = run_program({"info", "org/tiny"});
  EXPECT_EQ(part.code, 1);
  EXPECT_THAT(part.err,
              AllOf(HasSubstr("has no whole model"), HasSubstr("filigree fetch org/tiny")));
  expect_success({"info", "org/tiny", "--prompt", "a cat"});
  expect_success({"fetch", "org/tiny"});
  expect_success({"info", "org/tiny"});
}

TEST_F(HubModels, OfflineNothingIsFetched) {
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  const ProgramRun run = run_program({"fetch", "org/tiny"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("HF_HUB_OFFLINE is set"));
  EXPECT_EQ(requests(), 0u);
}

TEST_F(HubModels, WhatIsNoNameIsRefusedBeforeAnythingIsAsked) {
  for (const char* name : {"../x", "/etc", "a/b/c", "a/b:../c", "a/b@../../c"}) {
    const ProgramRun run = run_program({"fetch", name});
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, HasSubstr("it is ORG/NAME")) << name;
  }
  EXPECT_EQ(requests(), 0u);
}

TEST_F(HubModels, ATokenIsNeverShown) {
  ::setenv("HF_TOKEN", "hf_secret", 1);
  hub_.set_amend([](const SeenRequest&, const std::string& name, ServerReply& reply) {
    if (name.empty()) return;
    reply = {};
    reply.status = 403;
    reply.headers = {"X-Error-Code: GatedRepo"};
  });
  const ProgramRun run = run_program({"fetch", "org/tiny", "--json"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("accept its terms"), Not(HasSubstr("hf_secret"))));
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_EQ(hub_.hub().requests()[0].header("authorization"), "Bearer hf_secret");
}

TEST_F(HubModels, AnInterruptedFetchGoesOn) {
  // Half of the weights arrive, then nothing more until the program has ended.
  const std::string weights = hub_.content_of("model.safetensors");
  hub_.set_amend([&](const SeenRequest& request, const std::string& name, ServerReply& reply) {
    if (name != "model.safetensors" || request.method == "HEAD" || reply.status == 302) return;
    reply.body = weights.substr(0, weights.size() / 2);
    reply.declared_length = std::to_string(weights.size());
    reply.waits = true;
  });
  const fs::path begun =
      repository() / "blobs" / (hub_.etag_of("model.safetensors") + ".incomplete");
  for (const int signal : {SIGINT, SIGTERM}) {
    const ProgramRun run = run_and_signal({"fetch", "org/tiny"}, signal, [&] {
      return fs::exists(begun) && fs::file_size(begun) == weights.size() / 2;
    });
    EXPECT_EQ(run.code, 128 + signal) << run.err;
    EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
    EXPECT_EQ(fs::file_size(begun), weights.size() / 2);
    hub_.set_amend([&](const SeenRequest& request, const std::string& name, ServerReply& reply) {
      if (name != "model.safetensors" || request.method == "HEAD" || reply.status == 302) return;
      reply.body = "";
      reply.declared_length = std::to_string(weights.size() - weights.size() / 2);
      reply.waits = true;
    });
  }
  hub_.set_amend({});
  hub_.store().forget();
  expect_success({"fetch", "org/tiny"});
  EXPECT_EQ(hub_.store().requests()[0].header("range"),
            "bytes=" + std::to_string(weights.size() / 2) + "-");
  expect_success({"info", "org/tiny"});
}

}  // namespace
}  // namespace filigree::cli
