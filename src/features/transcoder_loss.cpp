#include <cmath>

#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/ops.h"
#include "ops/reconstruction/reconstruction.h"

namespace filigree {

Variable decoder_norms(const TranscoderLayer& layer) {
  // The number keeps the slope finite where a decoder is still zero.
  return sqrt(shift(sum(square(layer.decoder), 1), 1e-20f));
}

TranscoderLoss transcoder_loss(const Transcoder& transcoder, const Tensor& inputs,
                               const Tensor& targets, const ActivityOptions& options,
                               const Penalties& penalties, Communicator* ranks) {
  require(targets.shape() == inputs.shape(), "transcoder: targets {} for inputs {}",
          targets.shape().to_string(), inputs.shape().to_string());
  const bool counts = penalties.sparsity > 0.0, pulls = penalties.inactive > 0.0;
  const float share = 1.0f / static_cast<float>(inputs.size(1));
  ActivityOptions with = options;
  with.below = options.below || pulls;
  TranscoderLoss result;
  result.activity = transcoder.encode(inputs, with, ranks);
  // On the GPU the bias is added in the pass that compares.
  const bool fused = targets.on_gpu();
  const std::vector<SparseCode>& codes = result.activity.codes;
  const Reconstruction compared =
      fused ? reconstruction(transcoder.decode_unbiased(codes, inputs, ranks),
                             transcoder.shared_decoder_bias(ranks), targets, share)
            : reconstruction(transcoder.decode(codes, inputs, ranks), {}, targets, share);
  result.difference = compared.difference;
  result.loss = compared.error;
  result.squares = compared.squares.on_host();
  // Read with the squares rather than waited for once more.
  if (fused)
    for (std::int64_t l = 0; l < targets.size(0); ++l)
      result.error += static_cast<double>(share) * static_cast<double>(result.squares.f32()[l]);
  else
    result.error = static_cast<double>(compared.error.value().item());
  // Of each kind of penalty the sums of all layers, which are read together at the end.
  std::vector<Variable> sums[2];
  const auto add_term = [&](const Variable& sum, double weight, std::size_t kind) {
    sums[kind].push_back(reshape(Variable(sum.value()), {1}));
    result.loss = add(result.loss, scale(sum, static_cast<float>(weight) * share));
  };
  for (std::size_t l = 0; (counts || pulls) && l < transcoder.layers().size(); ++l) {
    const Variable norms = decoder_norms(transcoder.layers()[l]);
    const auto c = static_cast<float>(penalties.saturation);
    if (counts)
      add_term(sum_all(saturated_activity(result.activity.codes[l], norms, c)), penalties.sparsity,
               0);
    if (pulls) add_term(sum_all(mul(result.activity.below[l], norms)), penalties.inactive, 1);
  }
  double own[2] = {0.0, 0.0};
  if (counts || pulls) {
    std::vector<Variable> all = sums[0];
    all.insert(all.end(), sums[1].begin(), sums[1].end());
    const Tensor values = concat(all, 0).value().on_host();
    for (std::size_t i = 0; i < all.size(); ++i)
      own[i < sums[0].size() ? 0 : 1] +=
          static_cast<double>(values.f32()[i]) * static_cast<double>(share);
  }
  if (ranks != nullptr && (counts || pulls)) ranks->sum(own);
  result.sparsity = own[0];
  result.inactive = own[1];
  return result;
}

}  // namespace filigree
