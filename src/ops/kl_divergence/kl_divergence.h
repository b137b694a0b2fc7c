// Kullback-Leibler divergence between next-token predictions, the loss of distillation.
#pragma once

#include "autograd/variable.h"

namespace filigree {

// Mean over positions of KL(softmax(teacher) || softmax(student)); both are logits [..., V]. The
// gradient flows to the student alone: (softmax(student) - softmax(teacher)) / positions. Throws
// Error when the shapes differ.
Variable kl_divergence(const Tensor& teacher, const Variable& student);

}  // namespace filigree
