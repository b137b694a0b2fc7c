// AdamW over groups of parameters, with its state as named tensors that a checkpoint can hold.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/named_parameter.h"
#include "dist/communicator.h"
#include "ops/optimizer/optimizer.h"
#include "train/settings.h"
#include "train/trainable.h"

namespace filigree {

struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  float weight_decay = 0.0f;
  float learning_rate_factor = 1.0f;
  bool own = false;  // this rank's part of what the ranks hold together (trainable.h)
};

struct AdamWOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
};

// One of the moments, as checkpoints have it.
struct AdamWMoment {
  std::string name;  // "m.NAME" or "v.NAME"
  Shape shape;
  std::function<Tensor()> fetch;  // all of it, on the CPU
};

class AdamW {
 public:
  // Parameters whose memory is read-only (mapped from a file) are copied first. The moments lie on
  // the parameters' device.
  //
  // With `sharing` its ranks share the moments of the parameters that all hold alike: each keeps
  // about one part in their number, steps that part of the parameters and is given the others'. An
  // element's step depends on nothing but itself and the norm of all gradients, so the numbers are
  // those of ranks that do not share, to the bit. The communicator must outlive the optimiser.
  AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options,
        Communicator* sharing = nullptr);

  // One step with the gradients that backward() left, scaled so that their global norm is at most
  // `clip` (0: not clipped) after multiplying them by `gradient_scale`. Parameters without a
  // gradient are left alone. The norm is that of all ranks' gradients where each has some of its
  // own. Returns the norm before clipping.
  double step(float learning_rate, double clip, float gradient_scale = 1.0f,
              Communicator* ranks = nullptr);

  std::int64_t steps() const { return steps_; }

  // What of it decides the result, the same on every rank.
  Settings settings() const;

  // The moments in the order of their names, of the parameters that all ranks hold alike or of this
  // rank's own. Those that the ranks share are fetched by all of them together, in this order.
  // restore() takes both parts together, whole, and throws Error when one is missing or has another
  // shape.
  enum class Part { kAlike, kOwn };
  std::vector<AdamWMoment> state(Part part = Part::kAlike) const;
  bool has_own() const;
  bool sharing() const { return ranks_ != nullptr; }
  // Of the moments that this rank keeps.
  std::uint64_t bytes() const;
  void restore(std::int64_t steps, const std::vector<std::pair<std::string, Tensor>>& state);

 private:
  struct Entry {
    NamedParameter parameter;
    float weight_decay, learning_rate_factor;
    bool own;
    // Where each rank's share of the elements begins, and the last one's ends; two numbers where
    // this rank has them all.
    std::vector<std::int64_t> shares;
    Tensor first, second;  // of this rank's share, in a row
  };

  double gradient_norm(Communicator* ranks) const;
  void share_out();
  Tensor own_share(const Entry& entry, const Tensor& whole) const;
  std::vector<std::vector<std::span<float>>> shares_of(
      const std::vector<std::pair<const Entry*, Tensor>>& wholes) const;
  Tensor fetch(const Entry& entry, const Tensor& share) const;

  std::vector<Entry> entries_;
  Communicator* ranks_ = nullptr;  // that share the moments
  AdamWOptions options_;
  std::int64_t steps_ = 0;
};

// The usual two groups: matrices decay, vectors (biases, norms, gate biases) do not.
std::vector<ParameterGroup> decay_groups(const std::vector<NamedParameter>& parameters,
                                         float weight_decay);
// The same of all that is trained, this rank's own parameters in groups of their own.
std::vector<ParameterGroup> decay_groups(const Trainable& trained, float weight_decay);

}  // namespace filigree
