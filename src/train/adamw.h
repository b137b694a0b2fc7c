// AdamW over groups of parameters, with its state as named tensors that a checkpoint can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filigree/autograd/named_parameter.h"
#include "filigree/dist/communicator.h"
#include "filigree/ops/optimizer/optimizer.h"
#include "filigree/train/settings.h"
#include "filigree/train/trainable.h"

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

class AdamW {
 public:
  // Parameters whose memory is read-only (mapped from a file) are copied first. The moments lie on
  // the parameters' device.
  AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options);

  // One step with the gradients that backward() left, scaled so that their global norm is at most
  // `clip` (0: not clipped) after multiplying them by `gradient_scale`. Parameters without a
  // gradient are left alone. The norm is that of all ranks' gradients where each has some of its
  // own. Returns the norm before clipping.
  double step(float learning_rate, double clip, float gradient_scale = 1.0f,
              Communicator* ranks = nullptr);

  std::int64_t steps() const { return steps_; }

  // What of it decides the result, the same on every rank.
  Settings settings() const;

  // The moments under "m.NAME" and "v.NAME", of the parameters that all ranks hold alike or of this
  // rank's own; restore() takes both together and throws Error when one is missing or has another
  // shape.
  enum class Part { kShared, kOwn };
  std::vector<std::pair<std::string, Tensor>> state(Part part = Part::kShared) const;
  bool has_own() const;
  void restore(std::int64_t steps, const std::vector<std::pair<std::string, Tensor>>& state);

 private:
  double gradient_norm(Communicator* ranks) const;

  struct Entry {
    NamedParameter parameter;
    Tensor first, second;
    float weight_decay, learning_rate_factor;
    bool own;
  };
  std::vector<Entry> entries_;
  AdamWOptions options_;
  std::int64_t steps_ = 0;
};

// The usual two groups: matrices decay, vectors (biases, norms, gate biases) do not.
std::vector<ParameterGroup> decay_groups(const std::vector<NamedParameter>& parameters,
                                         float weight_decay);
// The same of all that is trained, this rank's own parameters in groups of their own.
std::vector<ParameterGroup> decay_groups(const Trainable& trained, float weight_decay);

}  // namespace filigree
