#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/sparse_code/on_device.h"
#include "ops/sparse_code/sparse_code_kernels.h"

namespace filigree {
SparseCode make_code(std::int64_t features, const std::vector<std::int32_t>& begin,
                     const std::vector<std::int32_t>& feature, const Variable& value) {
  const auto entries = static_cast<std::int64_t>(feature.size());
  require(!begin.empty() && begin.front() == 0 && begin.back() == entries,
          "sparse code: the rows do not begin at 0 and end at {} entries", entries);
  require(value.shape() == Shape({entries}), "sparse code: values {} for {} entries",
          value.shape().to_string(), entries);
  for (std::size_t r = 0; r + 1 < begin.size(); ++r) {
    require(begin[r] <= begin[r + 1] && begin[r + 1] <= entries,
            "sparse code: row {} ends before it begins", r);
    for (auto p = static_cast<std::size_t>(begin[r]); p < static_cast<std::size_t>(begin[r + 1]);
         ++p)
      require(feature[p] >= 0 && feature[p] < features &&
                  (p == static_cast<std::size_t>(begin[r]) || feature[p - 1] < feature[p]),
              "sparse code: feature {} of row {} is not ascending within {} features", feature[p],
              r, features);
  }
  const DeviceKind device = value.value().device();
  SparseCode code;
  code.rows = static_cast<std::int64_t>(begin.size()) - 1;
  code.features = features;
  code.begin = Tensor::from_ids({code.rows + 1}, begin).to(device);
  code.feature = Tensor::from_ids({entries}, feature).to(device);
  code.value = value;
  return code;
}

CodeByFeature entries_by_feature(const SparseCode& code) {
  if (code.by_feature.defined()) return code.by_feature;
  CodeByFeature by;
  by.begin = code.begin.like({code.features + 1});
  by.row = code.feature.like({code.entries()});
  by.entry = code.feature.like({code.entries()});
  const CodeByFeatureArgs args{.rows = code.rows,
                               .features = code.features,
                               .entries = code.entries(),
                               .begin = code.begin.data<std::int32_t>(),
                               .feature = code.feature.data<std::int32_t>(),
                               .feature_begin = by.begin.mutable_data<std::int32_t>(),
                               .row = by.row.mutable_data<std::int32_t>(),
                               .entry = by.entry.mutable_data<std::int32_t>()};
  on_device_of(
      code.begin, [&] { cpu::code_by_feature(args); }, [&](auto) { cuda::code_by_feature(args); });
  return by;
}

namespace {

void update_density_on_cpu(const SparseCode& code, float keep, float dead, float* density,
                           std::int32_t* counts) {
  std::vector<std::int32_t> active(static_cast<std::size_t>(code.features), 0);
  const std::int32_t* feature = code.feature.i32();
  const float* value = code.value.value().f32();
  const std::int64_t entries = code.entries();
  for (std::int64_t p = 0; p < entries; ++p)
    if (value[p] > 0.0f) ++active[static_cast<std::size_t>(feature[p])];
  const auto rows = static_cast<float>(code.rows);
  for (std::size_t f = 0; f < active.size(); ++f) {
    density[f] = keep * density[f] + (1.0f - keep) * static_cast<float>(active[f]) / rows;
    counts[0] += active[f];
    counts[1] += density[f] < dead ? 1 : 0;
  }
}

}  // namespace

Tensor update_density(std::span<const SparseCode> codes, float keep, float dead, Tensor& density) {
  require(!codes.empty(), "update_density: there are no codes");
  const auto count = static_cast<std::int64_t>(codes.size()), features = codes[0].features;
  require(density.shape() == Shape({count, features}),
          "update_density: densities {} for {} codes of {} features", density.shape().to_string(),
          count, features);
  Tensor counts = Tensor::zeros({count, 2}, DType::kI32, density.device());
  float* densities = density.mutable_data<float>();
  std::int32_t* totals = counts.mutable_data<std::int32_t>();
  std::vector<CodeByFeature> kept;
  std::vector<DensityArgs> all;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const SparseCode& code = codes[i];
    require(code.features == features, "update_density: codes of {} and of {} features", features,
            code.features);
    float* to = densities + static_cast<std::int64_t>(i) * features;
    std::int32_t* total = totals + 2 * i;
    if (!density.on_gpu()) {
      update_density_on_cpu(code, keep, dead, to, total);
      continue;
    }
    const CodeByFeature& by = kept.emplace_back(entries_by_feature(code));
    all.push_back({features, by.begin.data<std::int32_t>(), by.entry.data<std::int32_t>(),
                   code.value.value().data<float>(), keep, static_cast<float>(code.rows), dead, to,
                   total});
  }
  if constexpr (kHasCuda)
    if (!all.empty()) cuda::update_density(all.data(), count);
  return counts;
}

Tensor dense_code(const SparseCode& code) {
  Tensor dense = Tensor::zeros({code.rows, code.features});
  const Tensor begin = code.begin.to(DeviceKind::kCpu), feature = code.feature.to(DeviceKind::kCpu),
               value = code.value.value().on_host();
  for (std::int64_t r = 0; r < code.rows; ++r)
    for (std::int32_t p = begin.i32()[r]; p < begin.i32()[r + 1]; ++p)
      dense.mutable_f32()[r * code.features + feature.i32()[p]] = value.f32()[p];
  return dense;
}

Variable saturated_activity(const SparseCode& code, const Variable& norms, float c) {
  require(norms.shape() == Shape({code.features}),
          "saturated_activity: norms {} for a code of {} features", norms.shape().to_string(),
          code.features);
  const Variable& value = code.value;
  Tensor y = value.value().like(value.shape());
  const SaturationArgs args{code.entries(),
                            c,
                            code.feature.data<std::int32_t>(),
                            value.value().data<float>(),
                            norms.value().data<float>(),
                            y.mutable_data<float>()};
  on_device_of(
      y, [&] { cpu::saturation(args); }, [&](auto) { cuda::saturation(args); });
  return make_result(y, {&value, &norms}, [code, norms, c, y](const Tensor& grad) {
    Tensor dvalue = y.like(y.shape()), slope = y.like(y.shape());
    const SaturationGradArgs slopes{code.entries(),
                                    c,
                                    code.feature.data<std::int32_t>(),
                                    code.value.value().data<float>(),
                                    norms.value().data<float>(),
                                    y.data<float>(),
                                    grad.data<float>(),
                                    dvalue.mutable_data<float>(),
                                    slope.mutable_data<float>()};
    on_device_of(
        y, [&] { cpu::saturation_grad(slopes); }, [&](auto) { cuda::saturation_grad(slopes); });
    if (norms.requires_grad()) {
      const CodeByFeature by = entries_by_feature(code);
      const SumEntriesArgs sums{code.features,
                                by.begin.data<std::int32_t>(),
                                by.entry.data<std::int32_t>(),
                                slope.data<float>(),
                                1.0f,
                                norms.grad_to_add_into().mutable_data<float>()};
      on_device_of(
          y, [&] { cpu::sum_entries(sums); }, [&](auto) { cuda::sum_entries(&sums, 1); });
    }
    if (code.value.requires_grad()) code.value.accumulate_grad(std::move(dvalue));
  });
}

}  // namespace filigree
