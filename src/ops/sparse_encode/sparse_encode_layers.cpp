// In training on a GPU batch-top-k takes its room beforehand and never asks how much of it is used;
// the layers' entries are put in the order of features together, and so are their gradients.

#include <algorithm>
#include <memory>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "ops/sparse_code/on_device.h"
#include "ops/sparse_code/sparse_code_kernels.h"
#include "ops/sparse_encode/encode_parts.h"
#include "ops/sparse_encode/sparse_encode_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

constexpr const char* kOp = "sparse_encode";

// Of the values h of layers that are begun together.
constexpr std::int64_t kHeldBytesOnGpu = std::int64_t{1} << 30;
constexpr std::int64_t kHeldBytesOnCpu = std::int64_t{1} << 24;

Tensor layer_of(const Tensor& x, std::int64_t layer) {
  return x.rows(layer, layer + 1).reshape({x.size(1), x.size(2)});
}

bool all_on_gpu(const Tensor& x, std::span<const EncoderWeights> encoders,
                const SparseEncodeOptions& options, bool with_below) {
  if (!x.on_gpu() || options.selection != Selection::kBatchTopK || options.sum || with_below ||
      x.size(1) == 0)
    return false;
  const std::int64_t features = encoders[0].weight.size(0);
  const std::int64_t most = std::max(room_of_batch(x.size(1), features, options), features);
  return most <= INT32_MAX / x.size(0) &&
         std::all_of(encoders.begin(), encoders.end(), [&](const EncoderWeights& encoder) {
           return encoder.weight.size(0) == features &&
                  needs_grad({&encoder.weight, &encoder.bias});
         });
}

// The codes of all layers, with their order by feature.
std::vector<SparseCode> codes_of(const Tensor& x, std::span<const EncoderWeights> encoders,
                                 const SparseEncodeOptions& options) {
  const std::int64_t layers = x.size(0), rows = x.size(1), features = encoders[0].weight.size(0);
  const std::int64_t room = room_of_batch(rows, features, options);
  const auto ids = [&](std::int64_t count) { return x.like({count}, DType::kI32); };
  Tensor begin = ids(layers * (rows + 1));
  Tensor feature = Tensor::zeros({layers * room}, DType::kI32, x.device());
  Tensor value = Tensor::zeros({layers * room}, DType::kF32, x.device());
  CodeByFeature order{ids(layers * features + 1), ids(layers * room), ids(layers * room)};
  on_device_of(
      x, [] {},
      [&](auto) {
        const Tensor number = ids(layers * room), row_of = ids(layers * room);
        const Tensor group = ids(layers * room);
        const auto state_words =
            static_cast<std::int64_t>((kBatchStateBytes + sizeof(float) - 1) / sizeof(float));
        const Tensor state = Tensor::zeros({layers, state_words}, DType::kI32, x.device());
        const auto pointer = [](const Tensor& tensor) {
          return Tensor(tensor).mutable_data<std::int32_t>();
        };
        cuda::no_groups(pointer(group), layers * room);
        for (std::int64_t l = 0; l < layers; ++l) {
          const EncoderWeights& encoder = encoders[static_cast<std::size_t>(l)];
          const Tensor h = pre_activations(layer_of(x, l), encoder, options.precision);
          cuda::batch_top_k({.rows = rows,
                             .features = features,
                             .wanted = options.k * rows,
                             .room = room,
                             .layer = l,
                             .h = h.data<float>(),
                             .bias = encoder.bias.value().data<float>(),
                             .state = pointer(state) + l * state_words,
                             .begin = pointer(begin) + l * (rows + 1),
                             .feature = pointer(feature) + l * room,
                             .value = value.mutable_data<float>() + l * room,
                             .group = pointer(group),
                             .number = pointer(number),
                             .row_of = pointer(row_of)});
        }
        cuda::order_entries({.groups = layers * features,
                             .entries = layers * room,
                             .room = room,
                             .group = pointer(group),
                             .number = pointer(number),
                             .row_of = pointer(row_of),
                             .begin = pointer(order.begin),
                             .row = pointer(order.row),
                             .entry = pointer(order.entry)});
      });
  std::vector<SparseCode> codes;
  for (std::int64_t l = 0; l < layers; ++l) {
    SparseCode code;
    code.rows = rows;
    code.features = features;
    code.begin = begin.rows(l * (rows + 1), (l + 1) * (rows + 1));
    code.feature = feature.rows(l * room, (l + 1) * room);
    code.value = Variable(value.rows(l * room, (l + 1) * room));
    // Begins count from the first layer's entries on, and a layer ends where the next begins.
    code.by_feature = {order.begin.rows(l * features, (l + 1) * features + 1), order.row,
                       order.entry};
    codes.push_back(std::move(code));
  }
  return codes;
}

// Of all layers whose values have a gradient. All entries have passed, so theirs is that of h.
void layers_gradients(const Tensor& x, const std::vector<EncoderWeights>& encoders,
                      const std::vector<SparseCode>& codes, const std::vector<Tensor>& grads) {
  std::vector<SumEntriesArgs> sums;
  for (std::size_t l = 0; l < codes.size(); ++l) {
    const Variable& bias = encoders[l].bias;
    if (!grads[l].defined() || !bias.requires_grad()) continue;
    const CodeByFeature& by = codes[l].by_feature;
    SumEntriesArgs args{.features = codes[l].features,
                        .begin = by.begin.data<std::int32_t>(),
                        .entry = by.entry.data<std::int32_t>(),
                        .coefficient = grads[l].data<float>()};
    args.to = bias.grad_to_write(args.add).mutable_data<float>();
    sums.push_back(args);
  }
  dispatch(
      kOp, x, [] {},
      [&](auto type) {
        using T = decltype(type);
        cuda::sum_entries(sums.data(), static_cast<std::int64_t>(sums.size()));
        std::vector<GatherRowsArgs<T>> products;
        for (std::size_t l = 0; l < codes.size(); ++l) {
          const Variable& weight = encoders[l].weight;
          if (!grads[l].defined() || !weight.requires_grad()) continue;
          const std::int64_t width = x.size(2);
          const CodeByFeature& by = codes[l].by_feature;
          bool add = true;
          Tensor& gradient = weight.grad_to_write(add);
          products.push_back(
              {.features = codes[l].features,
               .targets = 1,
               .width = width,
               .begin = by.begin.data<std::int32_t>(),
               .row = by.row.data<std::int32_t>(),
               .entry = by.entry.data<std::int32_t>(),
               .coefficient = grads[l].data<float>(),
               .from = {x.data<T>() + static_cast<std::int64_t>(l) * x.size(1) * width, width, 0},
               .to = {gradient.mutable_data<float>(), width, 0},
               .add = add});
        }
        cuda::gather_rows_by_feature(products.data(), static_cast<std::int64_t>(products.size()));
      });
}

std::vector<Encoded> encode_on_gpu(const Tensor& x, std::span<const EncoderWeights> encoders,
                                   const SparseEncodeOptions& options) {
  std::vector<SparseCode> codes = codes_of(x, encoders, options);
  // The layers' gradients are kept until all have come, and are then taken together: by the closure
  // of a result that nobody sees, recorded before theirs.
  const Variable together = Variable::result(Tensor::empty({0}));
  const auto grads = std::make_shared<std::vector<Tensor>>(codes.size());
  std::vector<const Variable*> inputs;
  for (const EncoderWeights& encoder : encoders)
    inputs.insert(inputs.end(), {&encoder.weight, &encoder.bias});
  Tape::current()->add(
      together, inputs,
      [x, codes, grads, kept = std::vector<EncoderWeights>(encoders.begin(), encoders.end())](
          const Tensor&) { layers_gradients(x, kept, codes, *grads); });
  std::vector<Encoded> results;
  for (std::size_t l = 0; l < codes.size(); ++l) {
    SparseCode code = codes[l];
    code.value =
        make_result(code.value.value(), {&together}, [together, grads, l](const Tensor& grad) {
          (*grads)[l] = grad;
          if (!together.grad().defined()) together.accumulate_grad(Tensor::empty({0}));
        });
    results.push_back({.code = std::move(code), .below = {}});
  }
  return results;
}

}  // namespace

std::vector<Encoded> sparse_encode_layers(const Tensor& x, std::span<const EncoderWeights> encoders,
                                          const SparseEncodeOptions& options, bool with_below) {
  require(x.shape().rank() == 3 && x.size(0) == static_cast<std::int64_t>(encoders.size()) &&
              !encoders.empty(),
          "{}: inputs {} for {} layers", kOp, x.shape().to_string(), encoders.size());
  if (all_on_gpu(x, encoders, options, with_below)) {
    for (std::int64_t l = 0; l < x.size(0); ++l)
      check_encode(Variable(layer_of(x, l)), encoders[static_cast<std::size_t>(l)], options);
    return encode_on_gpu(x, encoders, options);
  }
  // Layers are begun together as far as their values find room, so that a GPU is waited for once
  // and not for each.
  const std::int64_t most = x.on_gpu() ? kHeldBytesOnGpu : kHeldBytesOnCpu;
  std::vector<Encoded> results;
  for (std::int64_t l = 0; l < x.size(0);) {
    std::vector<BegunEncoding> begun;
    std::int64_t held = 0;
    while (l < x.size(0) && (begun.empty() || held < most)) {
      begun.push_back(
          begin_encode(Variable(layer_of(x, l)), encoders[static_cast<std::size_t>(l)], options));
      held += static_cast<std::int64_t>(begun.back().h.bytes());
      ++l;
    }
    const std::vector<std::int64_t> entries = entries_of(begun);
    for (std::size_t i = 0; i < begun.size(); ++i) {
      results.push_back(finish_encode(begun[i], entries[i], options, with_below));
      begun[i] = {};  // its values are large
    }
  }
  return results;
}

}  // namespace filigree
