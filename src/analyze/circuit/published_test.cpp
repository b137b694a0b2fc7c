#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "filigree/circuit.h"
#include "filigree/error.h"

namespace filigree {
namespace {

ModelConfig gpt2_small() {
  ModelConfig config;
  config.family = "gpt2";
  config.layers = config.heads = config.key_heads = 12;
  config.width = 768, config.head_width = 64, config.vocabulary = 50257;
  return config;
}

TEST(PublishedCircuits, AreThoseOfGpt2Small) {
  const PublishedCircuit* ioi = published_circuit("ioi", gpt2_small());
  ASSERT_NE(ioi, nullptr);
  std::map<std::string_view, int> classes;
  for (const PublishedPart& part : ioi->parts) ++classes[part.role];
  EXPECT_EQ(ioi->parts.size(), 26u);
  EXPECT_EQ(classes.size(), 7u);
  EXPECT_EQ(classes["backup name mover"], 8);
  ASSERT_NE(ioi->find({Site::kZ, 9, 9}), nullptr);
  EXPECT_EQ(ioi->find({Site::kZ, 9, 9})->role, "name mover");
  EXPECT_EQ(ioi->find({Site::kZ, 9, 8}), nullptr);

  const PublishedCircuit* years = published_circuit("greater-than", gpt2_small());
  ASSERT_NE(years, nullptr);
  EXPECT_EQ(years->parts.size(), 12u);
  EXPECT_NE(years->find({Site::kMlpOut, 10}), nullptr);
  for (const PublishedCircuit* circuit : {ioi, years})
    for (std::size_t i = 0; i < circuit->parts.size(); ++i) {
      check_target(circuit->parts[i].target, gpt2_small(), 1);
      EXPECT_EQ(circuit->find(circuit->parts[i].target), &circuit->parts[i]) << "twice";
    }

  EXPECT_EQ(published_circuit("pronoun", gpt2_small()), nullptr);
  ModelConfig medium = gpt2_small();
  medium.layers = 24;
  EXPECT_EQ(published_circuit("ioi", medium), nullptr);
}

TEST(Agreement, OfAMadeUpImportance) {
  PublishedCircuit circuit;
  circuit.parts = {{{Site::kZ, 0, 0}, "a"}, {{Site::kZ, 0, 1}, "b"}, {{Site::kZ, 5, 5}, "absent"}};
  const std::vector<PatchTarget> order = {
      {Site::kZ, 0, 0}, {Site::kZ, 1, 0}, {Site::kZ, 0, 1}, {Site::kZ, 1, 1}};
  const std::vector<PatchTarget> kept(order.begin(), order.begin() + 3), one = {order[0]};
  const Agreement found = agreement(circuit, order, {4, 3, 2, 1}, kept);
  EXPECT_EQ(found.published, 2u);
  EXPECT_EQ(found.kept, 3u);
  EXPECT_EQ(found.common, 2u);
  EXPECT_DOUBLE_EQ(found.precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(found.recall, 1.0);
  EXPECT_DOUBLE_EQ(found.area, 0.75);  // three of four pairs in order
  EXPECT_DOUBLE_EQ(agreement(circuit, order, {4, 2, 2, 1}, one).area, 0.875);  // a tie is half
  EXPECT_DOUBLE_EQ(agreement(circuit, order, {4, 2, 2, 1}, one).recall, 0.5);
  EXPECT_DOUBLE_EQ(agreement(circuit, order, {1, 1, 1, 1}, {}).area, 0.5);
  EXPECT_THROW(agreement(circuit, one, {1}, one), Error);
  // The circuit speaks of heads only, so an MLP is neither right nor wrong.
  std::vector<PatchTarget> with_mlp = order;
  with_mlp.push_back({Site::kMlpOut, 0});
  const Agreement same = agreement(circuit, with_mlp, {4, 3, 2, 1, 9}, with_mlp);
  EXPECT_DOUBLE_EQ(same.area, 0.75);
  EXPECT_EQ(same.kept, 4u);
}

TEST(Agreement, OfTheCircuitWithItselfIsPerfect) {
  const PublishedCircuit& ioi = *published_circuit("ioi", gpt2_small());
  std::vector<PatchTarget> order = all_heads(gpt2_small());
  std::stable_partition(order.begin(), order.end(),
                        [&](const PatchTarget& target) { return ioi.find(target) != nullptr; });
  std::vector<double> scores(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) scores[i] = static_cast<double>(200 - i);
  const Agreement found = agreement(ioi, order, scores, {order.begin(), order.begin() + 26});
  EXPECT_DOUBLE_EQ(found.precision, 1);
  EXPECT_DOUBLE_EQ(found.recall, 1);
  EXPECT_DOUBLE_EQ(found.area, 1);
}

}  // namespace
}  // namespace filigree
