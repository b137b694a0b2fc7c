// Kullback-Leibler divergence between next-token predictions, the loss of distillation.
#pragma once

#include "autograd/variable.h"

namespace filigree {

// Mean over positions of KL(softmax(teacher) || softmax(student)); both are logits [..., V]. The
// gradient flows to the student alone: (softmax(student) - softmax(teacher)) / positions. With
// `targets` (i32, one a position) the positions that cross_entropy ignores do not count here
// either. Throws Error when the shapes differ or no position counts.
Variable kl_divergence(const Tensor& teacher, const Variable& student, const Tensor& targets = {});

}  // namespace filigree
