#include "features/trained_replacement.h"

#include "filigree/ops.h"

namespace filigree {
namespace {

class TrainedReplacement {
 public:
  TrainedReplacement(const Transcoder& transcoder, const FeatureHooks& hooks,
                     const ActivationScales& scales, const ActivityOptions& options,
                     Communicator* ranks)
      : transcoder_(transcoder), hooks_(hooks), scales_(scales), options_(options), ranks_(ranks) {}

  void add_to(Taps& taps) {
    // Behind this tap there is the MLP alone, whose output is replaced: it need not be recorded.
    const bool ends_here = hooks_.input == "ln2.hook_normalized";
    for (std::int64_t l = 0; l < transcoder_.shape().layers; ++l) {
      taps.intervene(hooks_.input_of(l), [this, l, ends_here](const Variable& x) {
        read(l, x);
        return ends_here ? Variable(x.value()) : x;
      });
      taps.intervene(hooks_.output_of(l), [this, l](const Variable& y) { return write(l, y); });
    }
  }

 private:
  void read(std::int64_t layer, const Variable& x) {
    const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const Variable behind = reshape(slice(x, 1, 1, length), {batch * (length - 1), width});
    inputs_ = scale(behind, scales_.input[static_cast<std::size_t>(layer)]);
    const Variable shared = ranks_ != nullptr ? shared_by_ranks(inputs_, *ranks_) : inputs_;
    const SparseCode code = transcoder_.encode_layer(layer, shared, options_, ranks_).code;
    const Variable written = transcoder_.decode_layer(layer, code, ranks_);
    written_ = written_.defined() ? add(written_, written) : written;
  }

  Variable write(std::int64_t layer, const Variable& y) {
    const std::int64_t batch = y.size(0), length = y.size(1), width = y.size(2);
    const Variable own = reshape(slice(written_, 0, 0, 1), {batch * (length - 1), width});
    const std::int64_t reach = transcoder_.shape().reach(layer);
    written_ = reach > 1 ? slice(written_, 0, 1, reach) : Variable();
    const Variable all = add(own, transcoder_.written_always(layer, inputs_, ranks_));
    const Variable scaled = scale(all, 1.0f / scales_.output[static_cast<std::size_t>(layer)]);
    const Variable behind =
        placed(reshape(scaled, {batch, length - 1, width}), y.value().device(), y.value().dtype());
    return concat({slice(Variable(y.value()), 1, 0, 1), behind}, 1);
  }

  const Transcoder& transcoder_;
  const FeatureHooks& hooks_;
  const ActivationScales& scales_;
  const ActivityOptions& options_;
  Communicator* ranks_;
  Variable inputs_;   // of the layer at hand, scaled
  Variable written_;  // to the layer at hand and those behind it so far, [layers, tokens, width]
};

}  // namespace

Variable replaced_hidden(const Model& model, const Tensor& ids, const Transcoder& transcoder,
                         const FeatureHooks& hooks, const ActivationScales& scales,
                         const ActivityOptions& options, Communicator* ranks) {
  TrainedReplacement replacement(transcoder, hooks, scales, options, ranks);
  Taps taps;
  taps.stay_on_device();
  replacement.add_to(taps);
  return model.final_hidden(ids, {.taps = &taps});
}

}  // namespace filigree
