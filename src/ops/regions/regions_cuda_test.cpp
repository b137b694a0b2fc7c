#include "ops/regions/regions.h"
#include "ops/regions/regions_test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaRegions, AreThoseOfTheCpuInBothElementTypes) {
  FILIGREE_NEEDS_GPU();
  for (const auto& [regions, count, blocks] :
       {std::tuple{1, 1, 1}, {1, 70, 40}, {3, 5, 900}, {40, 33, 7}, {300, 2, 2}, {9, 33, 50}})
    for (const DType to_type : {DType::kF32, DType::kBf16})
      for (const DType from_type : {DType::kF32, DType::kBf16}) {
        const RegionsCase c = regions == 9 ? many_sources(regions, count, blocks)
                                           : random_regions(5, regions, count, blocks);
        const auto rounded = [](const Tensor& values, DType dtype) {
          return values.to(dtype).to(DType::kF32);
        };
        const Tensor start = rounded(random_tensor({c.elements}, 1), to_type);
        std::vector<Tensor> here, there;
        for (std::size_t i = 0; i < c.sources.size(); ++i) {
          here.push_back(rounded(random_tensor({c.sources[i]}, 2 + i), from_type));
          there.push_back(here.back().to(from_type).to(DeviceKind::kCuda));
        }
        Tensor wanted = start.clone(), found = start.to(to_type).to(DeviceKind::kCuda);
        write_regions(wanted, here, c.list);
        write_regions(found, there, c.list);
        EXPECT_LT(l2_error(found.on_host().values(), wanted.values()),
                  to_type == DType::kF32 ? 1e-6 : 1e-2)
            << regions << " regions";
      }
}

}  // namespace
}  // namespace filigree
