// A model whose MLPs are replaced by a transcoder that is being trained: as replacement.h has it,
// but recorded, so that the gradient of what the model then predicts reaches the transcoder through
// all layers behind it. The model itself is not trained.
//
// The first position keeps its MLPs. Nothing before it is replaced, so that its residual stream is
// that of the plain run, and no gradient passes there.
#pragma once

#include <cstdint>

#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/model.h"

namespace filigree {

// What the output layer reads, [B, T, width], of windows `ids` [B, T]. The transcoder reads and
// writes activations that are scaled; which features are active is chosen as in training. Each of
// several processes holds some of the features and passes the same windows.
Variable replaced_hidden(const Model& model, const Tensor& ids, const Transcoder& transcoder,
                         const FeatureHooks& hooks, const ActivationScales& scales,
                         const ActivityOptions& options, Communicator* ranks = nullptr);

}  // namespace filigree
