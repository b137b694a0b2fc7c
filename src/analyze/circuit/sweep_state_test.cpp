// Sweeps that stop in the middle and go on, and files that must not be trusted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "analyze/analyze_test_support.h"
#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/edge_circuit.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

class SweepStateFile : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "state";
};

// Stops a sweep after `most` steps, goes on in a new state, and counts the steps run again.
void stop_and_go_on(const std::filesystem::path& file,
                    const std::function<std::vector<double>(const PatchOptions&)>& run) {
  const std::vector<double> whole = run({});
  PatchOptions options;
  options.tokens_at_once = 64;  // many steps
  const std::vector<double> in_steps = run(options);
  ASSERT_EQ(whole.size(), in_steps.size());
  for (int stops = 0;; ++stops) {
    ASSERT_LT(stops, 100);
    SweepState state(file);
    const std::size_t before = state.steps();
    options.state = &state.section("test", 7);
    int steps = 0;
    options.progress = [&](std::int64_t, std::int64_t) {
      // Steps that were done are passed at once and do not count.
      if (state.steps() > before && ++steps == 3) fail("stop");
    };
    std::vector<double> found;
    const std::string error = error_of([&] { found = run(options); });
    state.save();
    if (error == "stop") continue;
    ASSERT_EQ(error, "no error");
    EXPECT_GT(stops, 2);         // else the test would show nothing
    EXPECT_EQ(found, in_steps);  // to the same bits
    break;
  }
}

TEST_F(SweepStateFile, HeadsGoOnToTheSameBits) {
  const auto model = small_model(true);
  const std::vector<TaskPrompt> prompts = small_prompts({9, 6, 9, 9, 6, 12});
  stop_and_go_on(file_, [&](const PatchOptions& options) {
    const Importance found = exact_importance(*model, prompts, all_heads(model->config()), options);
    std::vector<double> values;
    for (const std::vector<double>& drops : found.drops)
      values.insert(values.end(), drops.begin(), drops.end());
    // And a second sweep with the same state.
    for (const CurvePoint& point :
         keep_most_important(*model, prompts, found, {1, 5}, options).points)
      values.push_back(point.metric);
    return values;
  });
}

TEST_F(SweepStateFile, EdgesGoOnToTheSameBits) {
  const auto model = small_model(false, 2);
  const ComponentGraph graph(model->config());
  const std::vector<TaskPrompt> prompts = small_prompts({6, 8});
  stop_and_go_on(file_, [&](const PatchOptions& options) {
    std::vector<double> values;
    for (const Estimate& drop : exact_edge_scores(*model, graph, prompts, options).drops)
      values.push_back(drop.mean);
    return values;
  });
}

TEST_F(SweepStateFile, IsRefusedForAnotherSweep) {
  {
    SweepState state(file_);
    state.section("heads", 1).add(0, {1.5, 2.5});
    state.save();
  }
  SweepState state(file_);
  EXPECT_EQ(*state.section("heads", 1).find(0), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(state.section("heads", 1).find(1), nullptr);
  EXPECT_EQ(state.section("curve", 9).steps(), 0u);
  EXPECT_THAT(
      error_of([&] { state.section("heads", 2); }),
      testing::AllOf(HasSubstr(file_.string()), HasSubstr("another model, task, option or version"),
                     HasSubstr("remove the file")));
}

TEST_F(SweepStateFile, IsRefusedWhenDamaged) {
  std::string bytes;
  {
    SweepState state(file_);
    state.section("heads", 1).add(3, {1, 2, 3});
    state.section("curve", 2).add(0, {4});
    state.save();
    bytes = read_file(file_);
  }
  const auto error_with = [&](const std::string& content) {
    write_file(file_, content);
    return error_of([&] { SweepState state(file_); });
  };
  EXPECT_EQ(error_with(bytes), "no error");
  for (std::size_t i = 16; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_THAT(error_with(changed), HasSubstr("damaged")) << i;
    EXPECT_THAT(error_with(bytes.substr(0, i)), HasSubstr("damaged")) << i;
  }
  EXPECT_THAT(error_with("hello"), HasSubstr("not a sweep state"));
  EXPECT_THAT(error_with(""), HasSubstr("not a sweep state"));
}

// Sizes that no file could have, under a checksum that fits.
TEST_F(SweepStateFile, IsRefusedWhenItsSizesLie) {
  const auto numbers = [](const std::vector<std::uint64_t>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 8);
  };
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const std::string& body :
       {numbers({huge}), numbers({0, 1, huge}), numbers({0, 1, 1, 0, huge}),
        numbers({0, 1, 1, 0, huge / 8 + 1}), numbers({0, 1, 2, 0, 0}), std::string("abc")}) {
    std::string bytes = "FILIGREE SWEEP 1" + body;
    bytes += numbers({SweepKey().add(bytes).value()});
    write_file(file_, bytes);
    EXPECT_THAT(error_of([&] { SweepState state(file_); }), HasSubstr("damaged"));
  }
}

TEST(SweepKeys, TellModelsPromptsAndOptionsApart) {
  const auto model = small_model(false), other = small_model(true);
  const std::vector<TaskPrompt> prompts = small_prompts({6, 8});
  std::vector<TaskPrompt> changed = prompts;
  changed[1].wrong[0] ^= 1;
  const auto key = [](const Model& m, const std::vector<TaskPrompt>& p, std::string_view text) {
    return SweepKey().add(m).add(p).add(text).value();
  };
  const std::uint64_t first = key(*model, prompts, "exact");
  EXPECT_EQ(first, key(*small_model(false), prompts, "exact"));
  EXPECT_NE(first, key(*other, prompts, "exact"));
  EXPECT_NE(first, key(*model, changed, "exact"));
  EXPECT_NE(first, key(*model, prompts, "exacT"));
  model->parameters()[0].variable.mutable_value().mutable_f32()[5] += 0.5f;
  EXPECT_NE(first, key(*model, prompts, "exact"));
}

}  // namespace
}  // namespace filigree
