// What a run folder promises: one run at a time, nothing of others touched, damage noticed.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "filigree/train.h"
#include "io/folder_checksums.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolderTest : public testing::Test {
 protected:
  // Trains for 12 steps, or until `stop`, with a checkpoint every 4.
  TrainerResult run(bool resume = false, std::int64_t stop = -1,
                    const std::function<void(std::int64_t)>& every_step = {}) {
    SmallTraining training(false, 12);
    training.options.checkpoint_every = 4;
    training.options.evaluate_every = 4;
    training.options.log_every = 1;
    training.options.keep = keep_;
    training.options.resume = resume;
    RunFolder folder(temporary_.path());
    std::int64_t seen = 0;
    TrainerCallbacks callbacks;
    callbacks.evaluate = [&] { return Metrics{{"loss", 1.0 / static_cast<double>(seen)}}; };
    callbacks.progress = [&](std::int64_t step, const Metrics&) {
      seen = step;
      if (every_step) every_step(step);
    };
    callbacks.stop_requested = [&] { return seen == stop; };
    callbacks.warn = [&](const std::string& warning) { warnings_.push_back(warning); };
    const TrainerResult result = train(*training.trained, *training.objective, training.source,
                                       *training.optimizer, folder, training.options, callbacks);
    weights_.clear();
    for (const NamedParameter& p : training.model->parameters())
      weights_.insert(weights_.end(), p.variable.value().values().begin(),
                      p.variable.value().values().end());
    return result;
  }

  fs::path checkpoint(const std::string& name) const {
    return temporary_.path() / "checkpoints" / name;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& item : fs::directory_iterator(checkpoint("")))
      found.push_back(item.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  const TemporaryFolder temporary_;
  int keep_ = 3;
  std::vector<std::string> warnings_;
  std::vector<float> weights_;
};

TEST_F(RunFolderTest, OnlyNamesThatARunGivesCount) {
  run(false, 5);
  for (const char* name : {"step-00000005-mine", "step-best", "step-notes", "step-5"})
    fs::create_directories(checkpoint(name));
  write_file(checkpoint("step-best") / "state.json", "{}");
  EXPECT_EQ(run(true).resumed_from, 5);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"step-00000005", "step-00000005-mine", "step-00000008",
                                      "step-00000012", "step-5", "step-best", "step-notes"}));
}

TEST_F(RunFolderTest, AStepIsSavedOnce) {
  // The evaluations improve at every checkpoint's step, and both save.
  class Counting : public ModelTrainable {
   public:
    using ModelTrainable::ModelTrainable;
    void save(const fs::path& folder, Communicator& ranks) const override {
      ++saves;
      ModelTrainable::save(folder, ranks);
    }
    mutable int saves = 0;
  };
  SmallTraining training(false, 8);
  training.options.checkpoint_every = training.options.evaluate_every = 4;
  Counting trained(*training.model);
  RunFolder folder(temporary_.path());
  double loss = 1.0;
  TrainerCallbacks callbacks;
  callbacks.evaluate = [&] { return Metrics{{"loss", loss /= 2.0}}; };
  train(trained, *training.objective, training.source, *training.optimizer, folder,
        training.options, callbacks);
  EXPECT_EQ(trained.saves, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000004", "step-00000008"}));
}

TEST_F(RunFolderTest, WhatAKilledRunLeftIsRemoved) {
  run(false, 5);
  for (const char* name : {"step-00000006.partial", "step-00000001.removed", "mine.partial"})
    fs::create_directories(checkpoint(name) / "inside");
  run(true);
  EXPECT_EQ(names(), (std::vector<std::string>{"mine.partial", "step-00000005", "step-00000008",
                                               "step-00000012"}));
}

TEST_F(RunFolderTest, ADamagedCheckpointGivesWayToAnOlderOne) {
  run();
  const std::vector<float> straight = weights_;
  // A weight, a moment, a counter, a file: each damage is of one that would load.
  const std::vector<std::function<void(const fs::path&)>> damages = {
      [](const fs::path& folder) {
        std::string bytes = read_file(folder / "model.safetensors");
        bytes[bytes.size() - 3] ^= 1;
        write_file(folder / "model.safetensors", bytes);
      },
      [](const fs::path& folder) {
        std::string bytes = read_file(folder / "optimizer.safetensors");
        const float infinite = INFINITY;
        std::memcpy(bytes.data() + bytes.size() - 4, &infinite, 4);
        write_file(folder / "optimizer.safetensors", bytes);
      },
      [](const fs::path& folder) {
        std::string text = read_file(folder / "state.json");
        const std::size_t at = text.find("\"optimizer_steps\": 12");
        ASSERT_NE(at, std::string::npos) << text;
        text[at + 20] = '3';
        write_file(folder / "state.json", text);
      },
      [](const fs::path& folder) { fs::remove(folder / "state.json"); },
      [](const fs::path& folder) { fs::remove(folder / kChecksumsFile); },
      [](const fs::path& folder) {
        fs::remove_all(folder);
        fs::copy(folder.parent_path() / "step-00000008", folder);
      }};
  for (std::size_t d = 0; d < damages.size(); ++d) {
    SCOPED_TRACE(d);
    warnings_.clear();
    damages[d](checkpoint("step-00000012"));
    EXPECT_EQ(run(true).resumed_from, 8);
    EXPECT_EQ(weights_, straight);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_THAT(warnings_[0], HasSubstr("step-00000012"));
    EXPECT_THAT(warnings_[0], HasSubstr("; going on from step 8 instead"));
  }
  for (const std::string& name : names()) write_file(checkpoint(name) / "state.json", "{}");
  EXPECT_THAT(error_of([&] { run(true); }), HasSubstr("none of the 3 checkpoints in "));
}

TEST_F(RunFolderTest, ARunThatGoesOnRemovesWhatAnInterruptedOneDidNot) {
  run();
  keep_ = 1;
  run(true);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000012"}));
}

TEST_F(RunFolderTest, ADamagedCheckpointStandsForNoOther) {
  run();
  fs::remove(checkpoint("step-00000012") / "state.json");
  keep_ = 1;
  EXPECT_EQ(run(true, 10).resumed_from, 8);
  // The best, the last, and the damaged one until it is written again.
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000008", "step-00000010", "step-00000012"}));
  EXPECT_EQ(run(true).resumed_from, 10);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000012"}));
}

TEST_F(RunFolderTest, CheckpointsThatCannotBeListedAreNoBeginning) {
  fs::create_symlink("loop", temporary_ / "loop");
  EXPECT_THAT(error_of([&] { RunFolder::checkpoints_in(temporary_ / "loop"); }),
              HasSubstr("cannot look at"));
  EXPECT_TRUE(RunFolder::checkpoints_in(temporary_ / "missing").empty());
}

TEST_F(RunFolderTest, ASecondRunInTheFolderIsRefusedAndTheFirstGoesOn) {
  std::string message;
  run(false, -1, [&](std::int64_t step) {
    if (step == 6)
      message = error_of([&] { RunFolder(temporary_.path()).lock(*make_single_process()); });
  });
  EXPECT_THAT(message, HasSubstr("is in use by process "));
  EXPECT_FALSE(fs::exists(temporary_ / "lock"));
}

TEST_F(RunFolderTest, NothingIsWrittenThroughLinks) {
  const TemporaryFolder elsewhere;
  write_file(elsewhere / "precious", "text");
  fs::create_symlink(elsewhere / "precious", temporary_ / "log.jsonl");
  EXPECT_THAT(error_of([&] { run(); }), HasSubstr("log.jsonl' is a symbolic link"));
  fs::remove(temporary_ / "log.jsonl");
  fs::create_directory_symlink(elsewhere.path(), checkpoint("step-00000004"));
  EXPECT_THAT(error_of([&] { run(); }), HasSubstr("step-00000004' is a symbolic link"));
  fs::remove_all(checkpoint(""));
  fs::create_directory_symlink(elsewhere.path(), temporary_ / "checkpoints");
  EXPECT_THAT(error_of([&] { run(); }), HasSubstr("checkpoints' is a symbolic link"));
  EXPECT_EQ(elsewhere.file_count(), 1u);
  EXPECT_EQ(read_file(elsewhere / "precious"), "text");
}

TEST_F(RunFolderTest, AStateOfAnotherKindIsRefusedInWords) {
  run(false, 5);
  const fs::path folder = checkpoint("step-00000005");
  nlohmann::json state = nlohmann::json::parse(read_file(folder / "state.json"));
  state["source"] = {{"served", "many"}};
  write_file(folder / "state.json", state.dump());
  write_checksums(folder, files_in(folder));
  EXPECT_THAT(error_of([&] { run(true); }), HasSubstr("holds no state of this run's data"));
}

}  // namespace
}  // namespace filigree
