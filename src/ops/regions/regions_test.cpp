#include "ops/regions/regions.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "filigree/error.h"
#include "filigree/runtime.h"
#include "ops/regions/regions_test_support.h"
#include "support/check_op.h"

namespace filigree {
namespace {

// One element after the other, as the header says it.
std::vector<float> by_elements(const Tensor& to, const std::vector<Tensor>& from,
                               const RegionList& list) {
  std::vector<float> result(to.values().begin(), to.values().end());
  for (const Region& region : list.regions)
    for (std::int64_t b = 0; b < region.blocks; ++b)
      for (std::int64_t i = 0; i < region.count; ++i) {
        float& out = result[static_cast<std::size_t>(region.to + b * region.step + i)];
        float value = region.keep != 0 ? out : 0.0f;
        for (std::int64_t s = 0; s < region.sources; ++s) {
          const RegionSource& source =
              list.sources[static_cast<std::size_t>(region.first_source + s)];
          value += source.factor * from[static_cast<std::size_t>(source.tensor)]
                                       .f32()[source.offset + b * source.step + i];
        }
        out = value;
      }
  return result;
}

void check_on_threads(const RegionsCase& c, const std::string& name) {
  const int before = num_threads();
  const Tensor start = random_tensor({c.elements}, 1);
  const std::vector<Tensor> from = {random_tensor({c.sources[0]}, 2),
                                    random_tensor({c.sources[1]}, 3)};
  const std::vector<float> wanted = by_elements(start, from, c.list);
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Tensor to = start.clone();
    write_regions(to, from, c.list);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_EQ(to.values()[i], wanted[i])
          << "element " << i << " of " << name << " on " << threads << " threads";
  }
  set_num_threads(before);
}

TEST(Regions, AreTheSumsOfTheirSourcesOnAnyNumberOfThreads) {
  for (const auto& [regions, count, blocks] :
       {std::tuple{1, 1, 1}, {1, 70, 40}, {3, 5, 900}, {40, 33, 7}, {300, 2, 2}})
    check_on_threads(random_regions(5, regions, count, blocks), fmt::format("{} regions", regions));
  for (const std::int64_t blocks : {1, 2, 50})
    check_on_threads(many_sources(9, 33, blocks), fmt::format("sums of {} blocks", blocks));
}

TEST(Regions, OverlapIsWrittenInOrder) {
  Tensor to = Tensor::zeros({6});
  RegionList list;
  list.overlap = true;
  list.begin(0, 4, 1, 0);
  list.add({0, 0, 0});
  list.begin(2, 4, 1, 0);
  list.add({0, 2, 0});
  write_regions(to, {Tensor::from({6}, std::vector<float>{1, 2, 3, 4, 5, 6})}, list);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(to.f32()[i], static_cast<float>(i + 1));
}

TEST(Regions, WithoutSourcesAreZeroOrStay) {
  Tensor to = Tensor::full({4}, 7.0f);
  RegionList list;
  list.begin(0, 2, 1, 0);
  list.begin(2, 2, 1, 0, true);
  write_regions(to, {}, list);
  EXPECT_EQ(to.f32()[1], 0.0f);
  EXPECT_EQ(to.f32()[2], 7.0f);
}

TEST(Regions, OutsideTheirTensorAreRefused) {
  Tensor to = Tensor::zeros({10});
  const std::vector<Tensor> from = {Tensor::zeros({5})};
  const auto refuses = [&](std::int64_t place, std::int64_t count, std::int64_t blocks,
                           const RegionSource& source) {
    RegionList list;
    list.begin(place, count, blocks, count);
    list.add(source);
    EXPECT_THROW(write_regions(to, from, list), Error);
  };
  refuses(7, 2, 2, {0, 0, 0});
  refuses(-1, 2, 1, {0, 0, 0});
  refuses(0, 0, 1, {0, 0, 0});
  refuses(0, 2, 2, {0, 2, 2});
  refuses(0, 2, 2, {0, -1, 0});
  refuses(0, 2, 2, {1, 0, 0});
}

}  // namespace
}  // namespace filigree
