// What a transcoder is trained to make small, over a batch of tokens:
//
//   1/tokens ( sum |y^ - y|^2  +  lambda sum tanh(c a N)  +  lambda_P sum max(theta - h, 0) N )
//
// N is the norm of all that a feature writes, and carries gradient. The second term counts active
// features, the third pulls features that are never active towards where they would be.
#pragma once

#include "features/transcoder.h"

namespace filigree {

struct Penalties {
  double sparsity = 0.0;    // lambda
  double saturation = 4.0;  // c
  double inactive = 0.0;    // lambda_P
};

struct TranscoderLoss {
  Variable loss;  // of this process: the whole error and the penalties of its features
  // Of all processes, per token: the three sums without their coefficients.
  double error = 0.0, sparsity = 0.0, inactive = 0.0;
  Activity activity;
  Tensor difference;  // y^ - y, [layers, tokens, width]
  // [2, layers] on the CPU: sums of squares of the difference, and of y about its mean.
  Tensor squares;
};

// Inputs and targets are [layers, tokens, width], the former in the transcoder's precision.
TranscoderLoss transcoder_loss(const Transcoder& transcoder, const Tensor& inputs,
                               const Tensor& targets, const ActivityOptions& options,
                               const Penalties& penalties, Communicator* ranks = nullptr);

// The norm of all that each feature of a layer writes, [features].
Variable decoder_norms(const TranscoderLayer& layer);

}  // namespace filigree
