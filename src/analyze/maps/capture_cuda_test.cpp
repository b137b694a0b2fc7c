// Attention maps of a model on the GPU are those of the CPU.
#include "analyze/circuit/circuit_test_support.h"
#include "filigree/maps.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

struct Captured {
  std::vector<std::vector<float>> maps;  // in the order in which they come
};

Captured captured(const Model& model, MapKind kind, std::int64_t batch_tokens) {
  std::vector<HeadId> heads;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer)
    for (const std::int64_t head : {0, 2}) heads.push_back({layer, head});
  std::vector<Prompt> prompts;
  for (const TaskPrompt& prompt : small_prompts({9, 9, 14})) {
    prompts.emplace_back();
    prompts.back().ids.assign(prompt.clean.begin(), prompt.clean.end());
  }
  CaptureOptions options = CaptureOptions::of(heads, kind);
  options.batch_tokens = batch_tokens;
  Captured result;
  capture_maps(model, prompts, options, [&](std::span<const HeadMap> maps) {
    for (const HeadMap& map : maps) {
      std::vector<float> cells(static_cast<std::size_t>(map.length * map.length));
      fill_map(map, kind, cells);
      result.maps.push_back(std::move(cells));
    }
  });
  return result;
}

TEST(CudaCapture, MapsAreThoseOfTheCpu) {
  FILIGREE_NEEDS_GPU();
  for (const bool gated : {false, true}) {
    const auto here = small_model(gated), there = small_model(gated);
    there->place({DeviceKind::kCuda, DType::kF32});
    for (const MapKind kind :
         {MapKind::kWeights, MapKind::kScores, MapKind::kGate, MapKind::kValueWeighted})
      for (const std::int64_t batch_tokens : {0, 64}) {
        const Captured wanted = captured(*here, kind, batch_tokens);
        const Captured found = captured(*there, kind, batch_tokens);
        ASSERT_EQ(found.maps.size(), wanted.maps.size());
        for (std::size_t i = 0; i < wanted.maps.size(); ++i)
          EXPECT_LT(l2_error(found.maps[i], wanted.maps[i]), 1e-3)
              << name_of(kind) << " map " << i << (gated ? " gated" : " dense");
      }
  }
}

}  // namespace
}  // namespace filigree
