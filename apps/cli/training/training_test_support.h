// A small corpus, its shards and a dense model, made by the program itself, for the tests of the
// commands that train and evaluate.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "apps/cli/tests/run_program.h"
#include "base/scratch_folder.h"

namespace filigree::cli {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

class TrainingCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shards_ = make_shards("shards", "1");
    expect_success(pretrain("dense", "20"));
  }

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  std::string make_shards(const std::string& name, const std::string& seed) const {
    expect_success({"task", "corpus", "--documents", "300", "--seed", seed, "--out",
                    path(name + ".txt"), "--quiet"});
    expect_success({"prepare", path(name + ".txt"), "--vocab", "300", "--set", "held-out-share=0.1",
                    "--out", path(name), "--quiet"});
    return path(name);
  }

  Arguments pretrain(const std::string& out, const std::string& steps) const {
    return {"pretrain", shards_,   "--out", path(out), "--layers", "2",           "--layer-heads",
            "2",        "--width", "16",    "--steps", steps,      "--context",   "32",
            "--batch",  "2",       "--lr",  "3e-3",    "--set",    "log-every=1", "--quiet"};
  }

  Arguments sparsify(const std::string& out, const std::string& steps) const {
    return {"sparsify", path("dense"), shards_, "--out", path(out), "--steps",     steps,
            "--batch",  "2",           "--lr",  "1e-3",  "--set",   "log-every=1", "--quiet"};
  }

  static ProgramRun expect_success(const Arguments& arguments) {
    ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run;
  }

  static nlohmann::json json_of(const Arguments& arguments, int code = 0) {
    const ProgramRun run = run_program(arguments + Arguments{"--json", "--quiet"});
    EXPECT_EQ(run.code, code) << run.err;
    const nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << run.out;
    return json;
  }

  // Of sparse runs. Their dense model has had 20 steps: that it had not converged, and that its
  // attention is worth nothing, is right (exit code 3) and not what a test is about.
  static ProgramRun expect_trained(const Arguments& arguments) {
    ProgramRun run = run_program(arguments);
    EXPECT_TRUE(run.code == 0 || run.code == 3) << run.err;
    return run;
  }
  static nlohmann::json json_of_trained(const Arguments& arguments) {
    const ProgramRun run = expect_trained(arguments + Arguments{"--json", "--quiet"});
    const nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << run.out;
    return json;
  }

  static void expect_failure(const Arguments& arguments, const std::string& part, int code = 1) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err,
                ::testing::AllOf(::testing::StartsWith("filigree"), ::testing::HasSubstr(part)));
  }

  std::string weights(const std::string& run) const {
    const std::string bytes = contents_of(scratch_.path() / run / "model.safetensors");
    EXPECT_FALSE(bytes.empty()) << run;
    return bytes;
  }

  // Lines of a run's log, 0 while there is none.
  std::size_t log_lines(const std::string& run) const {
    const std::string text = contents_of(scratch_.path() / run / "log.jsonl");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  const ScratchFolder scratch_;
  std::string shards_;
};

}  // namespace filigree::cli
