// A prompt through a model: predictions, taps, gradients and changes against runs made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/scratch_folder.h"
#include "filigree/lens_study.h"
#include "support/errors.h"
#include "support/model_folder.h"
#include "support/npz_reader.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Run : public ::testing::TestWithParam<bool> {
 protected:
  Run() {
    if (!GetParam()) return;
    const auto gated = load_model(folder_.path());
    gated->set_gate({{0.01f}});
    save_model(*gated, folder_.path());
  }
  static RunRequest changed(const std::string& scales) {
    RunRequest request = {.prompt = "The cat sat on the", .gradient_of = " the"};
    if (!scales.empty()) request.interventions.add_scales(scales);
    return request;
  }
  RunResult run(const RunRequest& request) const { return study::run(request, models().at(0), {}); }
  const std::vector<LoadedModel>& models() const {
    if (models_.empty()) models_ = load_models({folder_.name()}, {});
    return models_;
  }

  const ModelFolder folder_;
  mutable std::vector<LoadedModel> models_;
};

TEST_P(Run, PlainIsTheModelsOwnPrediction) {
  RunRequest request = {.prompt = "The cat sat on the", .taps = {"*.attn.hook_z", "hook_embed"}};
  request.tokens = {" a"};
  request.top = 3;
  request.interventions.add_ablations("L1H2");
  const RunResult result = run(request);
  const Model& model = models()[0].model();
  const auto T = static_cast<std::int64_t>(result.ids.size());
  Taps taps;
  taps.observe("blocks.*.attn.hook_z");
  const Tensor logits =
      model.forward(Tensor::from_ids({1, T}, result.ids), {.taps = &taps}).value();
  const std::int64_t V = logits.size(2);
  const float* last = logits.f32() + (T - 1) * V;
  double sum = 0;
  for (std::int64_t v = 0; v < V; ++v) sum += std::exp(static_cast<double>(last[v]));
  ASSERT_GE(result.listed.size(), 4u);
  EXPECT_EQ(models()[0].tokenizer().token_text(result.listed[0]), " a");
  for (const NextToken& token : result.plain.listed) {
    EXPECT_NEAR(token.logit, last[token.id], 1e-4);
    EXPECT_NEAR(token.probability, std::exp(static_cast<double>(last[token.id])) / sum, 1e-5);
    EXPECT_EQ(token.rank,
              std::count_if(last, last + V, [&](float other) { return other > last[token.id]; }));
  }
  EXPECT_EQ(result.taps, (std::vector<std::string>{"blocks.0.attn.hook_z", "blocks.1.attn.hook_z",
                                                   "hook_embed"}));
  const Tensor& z = taps.value("blocks.1.attn.hook_z");
  for (std::int64_t i = 0; i < z.elements(); ++i)
    EXPECT_NEAR(result.plain.taps[1].f32()[i], z.f32()[i], 1e-5);
  // Of the changed run the observed tap is the changed one.
  const Tensor& cut = result.changed->taps[1];  // [T, H, D]
  const std::int64_t H = cut.size(1), D = cut.size(2);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t d = 0; d < D; ++d) EXPECT_EQ(cut.f32()[(t * H + 2) * D + d], 0.0f);
  EXPECT_GT(result.divergence.back(), 0.0);
}

// The gradient against differences of runs in which the part is scaled a little up and down.
TEST_P(Run, GradientsAreSlopes) {
  const RunResult result = run(changed(""));
  ASSERT_EQ(result.plain.parts.size(), 10u);  // 2 layers of 4 heads and an MLP
  constexpr double kStep = 0.01;
  int steep = 0, compared = 0;
  for (const PartGradient& part : result.plain.parts) {
    const std::string place = part.part.kind == ComponentKind::kMlp
                                  ? fmt::format("L{}MLP", part.part.layer)
                                  : head_name({part.part.layer, part.part.head});
    double ends[2];
    bool same_gates = true;  // a gate that opens or closes on the way is a jump, not a slope
    for (const int side : {0, 1}) {
      RunRequest request = changed(fmt::format("{}={}", place, side == 0 ? 1 - kStep : 1 + kStep));
      if (GetParam()) request.taps = {"*hook_gate"};
      const RunResult moved = run(request);
      ends[side] = moved.changed->listed[0].logit;
      for (std::size_t t = 0; t < moved.taps.size(); ++t)
        same_gates = same_gates && std::ranges::equal(moved.plain.taps[t].values(),
                                                      moved.changed->taps[t].values());
    }
    if (!same_gates) continue;
    ++compared;
    const double slope = (ends[1] - ends[0]) / (2 * kStep);
    EXPECT_NEAR(part.value_times_gradient, slope, 2e-3 + 0.02 * std::abs(slope)) << place;
    steep += std::abs(slope) > 0.02 ? 1 : 0;
  }
  EXPECT_GT(steep, 2);  // else the test would show nothing
  EXPECT_GT(compared, 5);
}

TEST_P(Run, WritesWhatNumPyReads) {
  RunRequest request = {.prompt = "The cat sat", .taps = {"blocks.1.attn.hook_*"}};
  request.gradient_of = " the";
  request.interventions.add_scales("L0H1=2");
  const RunResult result = run(request);
  const ScratchFolder scratch;
  write_npz(result, scratch.path() / "run.npz");
  const auto files = read_zip((scratch.path() / "run.npz").string());
  const auto T = static_cast<std::int64_t>(result.ids.size());
  for (std::size_t i = 0; i < result.taps.size(); ++i)
    for (const bool gradient : {false, true}) {
      const std::string middle = gradient ? ".gradient." : ".";
      const NpyArray plain = parse_npy(files.at("plain" + middle + result.taps[i] + ".npy"));
      const Tensor& expected = gradient ? result.plain.gradients[i] : result.plain.taps[i];
      EXPECT_EQ(plain.values<float>(),
                std::vector<float>(expected.values().begin(), expected.values().end()));
      EXPECT_TRUE(files.contains("changed" + middle + result.taps[i] + ".npy"));
    }
  EXPECT_EQ(parse_npy(files.at("plain.blocks.1.attn.hook_z.npy")).shape,
            (std::vector<std::int64_t>{T, 4, models()[0].config().head_width}));
  EXPECT_EQ(parse_npy(files.at("ids.npy")).values<std::int32_t>(), result.ids);
  const std::vector<float> logits = parse_npy(files.at("changed.logits.npy")).values<float>();
  EXPECT_EQ(logits[static_cast<std::size_t>(result.listed[0])],
            static_cast<float>(result.changed->listed[0].logit));
  EXPECT_EQ(nlohmann::json::parse(files.at("meta.json"))["interventions"][0]["place"], "L0H1");
}

TEST_P(Run, TokensNamePositions) {
  RunRequest by_token = {.prompt = "The cat sat on the"}, by_number = by_token;
  by_token.interventions.add_ablations("L1H2@' sat'");
  const RunResult result = run(by_token);
  const std::vector<std::string> tokens = result.tokens();
  const auto at = std::find(tokens.begin(), tokens.end(), " sat") - tokens.begin();
  ASSERT_LT(at, static_cast<std::ptrdiff_t>(tokens.size()));
  by_number.interventions.add_ablations(fmt::format("L1H2@{}", at));
  EXPECT_EQ(result.divergence, run(by_number).divergence);
  EXPECT_EQ(to_json(result)["interventions"][0]["position"], at);
  by_token.interventions.add_ablations("L1H2@' dog'");
  EXPECT_THAT(error_of([&] { run(by_token); }),
              AllOf(HasSubstr("no token ' dog'"), HasSubstr("' sat'")));
}

TEST_P(Run, NamesTapsAndTokensThatAreNotThere) {
  EXPECT_THAT(error_of([&] { run({.prompt = "a", .taps = {"blocks.1.attn.hook_zz"}}); }),
              AllOf(HasSubstr("no tap 'blocks.1.attn.hook_zz'"),
                    HasSubstr("the nearest are blocks.1.attn.hook_z,")));
  EXPECT_THAT(error_of([&] { run({.prompt = "a", .gradient_of = " extraordinarily long"}); }),
              HasSubstr("not one"));
  RunRequest far = {.prompt = "The cat"};
  far.interventions.add_ablations("L0H1@7");
  EXPECT_THAT(error_of([&] { run(far); }), HasSubstr("there is no position 7"));
}

INSTANTIATE_TEST_SUITE_P(Gates, Run, testing::Values(false, true),
                         [](const auto& gated) { return gated.param ? "Gated" : "Dense"; });

}  // namespace
}  // namespace filigree::study
