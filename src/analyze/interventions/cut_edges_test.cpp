// The edges that carry nothing in a changed run.
#include "analyze/interventions/cut_edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filigree {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two layers of four heads, of which two share a key head.
std::vector<CutEdges> cut_by(const Interventions& changes) {
  ModelConfig config;
  config.layers = 2, config.heads = 4, config.key_heads = 2;
  return cut_edges(changes, config, 6);
}

std::vector<CutEdges> cut_by_ablating(const std::string& places) {
  Interventions changes;
  changes.add_ablations(places);
  return cut_by(changes);
}

TEST(CutEdges, AreThoseOfHeadsThatAreOffHoweverTheyAreNamed) {
  const CutEdges all = {{1, 2}};
  EXPECT_THAT(cut_by_ablating("L1H2"), ElementsAre(all));
  EXPECT_THAT(cut_by_ablating("L1H2.z,L1H2"), ElementsAre(all));
  EXPECT_EQ(cut_by_ablating("L1").size(), 4u);
  EXPECT_EQ(cut_by_ablating("L1H*"), cut_by_ablating("L1"));
  EXPECT_EQ(cut_by_ablating("L1.attn-out"), cut_by_ablating("L1"));
  EXPECT_EQ(cut_by_ablating("blocks.1.attn.hook_z"), cut_by_ablating("L1"));
  EXPECT_EQ(cut_by_ablating("blocks.*.attn.hook_z").size(), 8u);
  EXPECT_THAT(cut_by_ablating("L*H2"), ElementsAre(CutEdges{{0, 2}}, all));
}

TEST(CutEdges, MayBeOfOneQueryOrOneKey) {
  EXPECT_THAT(cut_by_ablating("L1H2@3"), ElementsAre(CutEdges{{1, 2}, 3}));
  EXPECT_THAT(cut_by_ablating("L1H2@-1"), ElementsAre(CutEdges{{1, 2}, 5}));
  // Key head 1 serves heads 2 and 3.
  EXPECT_THAT(cut_by_ablating("L0H1.v@4"),
              UnorderedElementsAre(CutEdges{{0, 2}, {}, 4}, CutEdges{{0, 3}, {}, 4}));
  const std::vector<CutEdges> cut = cut_by_ablating("L1H2@3,L0H0.v@1");
  EXPECT_TRUE(is_cut(cut, {1, 2}, 3, 0));
  EXPECT_FALSE(is_cut(cut, {1, 2}, 4, 0));
  EXPECT_TRUE(is_cut(cut, {0, 1}, 5, 1));
  EXPECT_FALSE(is_cut(cut, {0, 1}, 5, 2));
}

TEST(CutEdges, AreNotThoseOfOtherChanges) {
  EXPECT_THAT(cut_by_ablating("L1MLP,L1H0.q,L1H0.k,L1H0.pattern@2<-1,L1.resid,embedding"),
              IsEmpty());
  Interventions changes;
  changes.add_scales("L0H0=0.5,L0H1=0");
  changes.add_patch("L1H3=Another text");
  // What is taken from another text is not what the head read in this one.
  EXPECT_THAT(cut_by(changes), UnorderedElementsAre(CutEdges{{0, 1}}, CutEdges{{1, 3}}));
}

}  // namespace
}  // namespace filigree
