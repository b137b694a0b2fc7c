// The output layer and its loss in one: next-token losses without the logits of the whole batch.
//
// Logits of a large vocabulary take more memory than all else of a training step. Here a few
// thousand rows of them live at a time: computed, turned into losses and into their own gradient,
// multiplied into the gradients of the layer's input and weight, forgotten. All gradients are thus
// known when the loss is, up to the factor that the backward pass brings.
#pragma once

#include <cstdint>

#include "filigree/autograd.h"
#include "filigree/ops.h"

namespace filigree {

// The predictions to learn from: what the teacher's output layer reads, and that layer.
struct Teacher {
  Tensor x;  // [..., teacher's width], on the device and of the type of the student's
  LinearWeight output;
  float soft_cap = 0.0f;  // of its logits (ops/elementwise: soft_cap); 0: none
};

struct OutputLossOptions {
  const Teacher* teacher = nullptr;
  float soft_cap = 0.0f;        // of the logits; 0: none
  float distillation = 0.0f;    // weight of the divergence from the teacher, 0 to 1
  std::int64_t chunk_rows = 0;  // rows of logits at a time; 0: as many as pays on the device
};

struct OutputLoss {
  Variable loss;  // (1 - distillation) cross entropy + distillation KL(teacher || student)
  // For reports, one number each on the device of the loss; the last two undefined without a
  // teacher.
  Tensor cross_entropy, divergence, teacher_cross_entropy;
};

// x [..., width] is what the output layer reads; targets as in cross_entropy, whose ignored
// positions count in none of the means. Gradients flow to x, to the weight and to the bias. Throws
// Error for shapes that do not fit, a distillation without a teacher, and targets that
// cross_entropy would refuse.
OutputLoss output_loss(const Variable& x, const LinearWeight& output, const Tensor& targets,
                       const OutputLossOptions& options = {});

// Bytes of the logits that live at a time, as output_loss keeps them; `capped` with soft caps.
std::int64_t output_loss_bytes(std::int64_t rows, std::int64_t vocabulary, DType dtype,
                               DeviceKind device, bool taught, bool capped);

}  // namespace filigree
