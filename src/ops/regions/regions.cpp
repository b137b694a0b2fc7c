#include "ops/regions/regions.h"

#include <algorithm>
#include <cstring>

#include "filigree/error.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

constexpr std::int64_t kMostElements = INT32_MAX;  // of one region: the GPU counts in 32 bits

void check_place(const char* what, const Tensor& tensor, std::int64_t offset, std::int64_t step,
                 const Region& region) {
  const std::int64_t last = offset + (region.blocks - 1) * step + region.count;
  require(offset >= 0 && step >= 0 && last <= tensor.elements(),
          "write_regions: a {} of {} blocks of {} from {} on, {} apart, is not within {}", what,
          region.blocks, region.count, offset, step, tensor.shape().to_string());
}

// Returns the number of elements of the largest region.
std::int64_t check(const Tensor& to, const std::vector<Tensor>& from, const RegionList& list) {
  for (const Tensor& tensor : from) {
    require_same_device("write_regions", to, tensor);
    require(tensor.dtype() == from[0].dtype(), "write_regions: sources of {} and {}; convert one",
            name_of(from[0].dtype()), name_of(tensor.dtype()));
  }
  std::int64_t largest = 0;
  for (const Region& region : list.regions) {
    require(region.count > 0 && region.blocks > 0 && region.count <= kMostElements / region.blocks,
            "write_regions: {} blocks of {} elements; a region has 1 to 2^31 - 1 elements",
            region.blocks, region.count);
    check_place("region", to, region.to, region.step, region);
    for (std::int64_t i = 0; i < region.sources; ++i) {
      const RegionSource& source = list.sources[static_cast<std::size_t>(region.first_source + i)];
      require(source.tensor >= 0 && source.tensor < static_cast<std::int64_t>(from.size()),
              "write_regions: there is no source {}; there are {}", source.tensor, from.size());
      check_place("source", from[static_cast<std::size_t>(source.tensor)], source.offset,
                  source.step, region);
    }
    largest = std::max(largest, region.count * region.blocks);
  }
  return largest;
}

// A table in the memory of a device; one of no rows has room for one.
template <typename Row>
Tensor table(const std::vector<Row>& rows, DeviceKind device) {
  static_assert(sizeof(Row) % sizeof(std::int32_t) == 0);
  const std::size_t bytes = rows.size() * sizeof(Row);
  const auto words = static_cast<std::int64_t>(std::max(bytes, sizeof(Row)) / sizeof(std::int32_t));
  Tensor here = Tensor::zeros({words}, DType::kI32);
  if (bytes > 0) std::memcpy(here.mutable_raw(), rows.data(), bytes);
  return here.to(device);
}

template <typename From>
std::vector<RegionPart<From>> parts_of(const std::vector<Tensor>& from, const RegionList& list) {
  std::vector<RegionPart<From>> parts;
  parts.reserve(list.sources.size());
  for (const RegionSource& source : list.sources)
    parts.push_back({from[static_cast<std::size_t>(source.tensor)].data<From>() + source.offset,
                     source.step, source.factor});
  return parts;
}

}  // namespace

void RegionList::begin(std::int64_t to, std::int64_t count, std::int64_t blocks, std::int64_t step,
                       bool keep) {
  regions.push_back(
      {to, count, blocks, step, static_cast<std::int64_t>(sources.size()), 0, keep ? 1 : 0});
}

void RegionList::add(const RegionSource& source) {
  require(!regions.empty(), "write_regions: a source before the first region");
  sources.push_back(source);
  ++regions.back().sources;
}

void write_regions(Tensor& to, const std::vector<Tensor>& from, const RegionList& list) {
  if (list.empty()) return;
  const std::int64_t largest = check(to, from, list);
  const auto count = static_cast<std::int64_t>(list.regions.size());
  dispatch(
      "write_regions", to,
      [&] {
        const std::vector<RegionPart<float>> parts = parts_of<float>(from, list);
        cpu::write_regions(
            {count, largest, list.regions.data(), parts.data(), to.mutable_f32(), list.overlap});
      },
      [&](auto to_type) {
        using To = decltype(to_type);
        const Tensor regions = table(list.regions, to.device());
        const auto run = [&](auto from_type) {
          using From = decltype(from_type);
          const Tensor parts = table(parts_of<From>(from, list), to.device());
          cuda::write_regions(RegionsArgs<To, From>{
              count, largest, reinterpret_cast<const Region*>(regions.bytes_on_device()),
              reinterpret_cast<const RegionPart<From>*>(parts.bytes_on_device()),
              to.mutable_data<To>(), list.overlap});
        };
        if (from.empty() || from[0].dtype() == DType::kF32)
          run(float());
        else
          run(Bf16());
      });
}

}  // namespace filigree
