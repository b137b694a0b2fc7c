// Kullback-Leibler divergence between next-token predictions, the loss of distillation.
#pragma once

#include "autograd/variable.h"

namespace filigree {

// Mean over positions of KL(softmax(teacher) || softmax(student)); both are logits [..., V]. The
// gradient flows to the student alone: (softmax(student) - softmax(teacher)) / positions. With
// `targets` (i32, one a position) the positions that cross_entropy ignores do not count here
// either. Throws Error when the shapes differ or no position counts.
Variable kl_divergence(const Tensor& teacher, const Variable& student, const Tensor& targets = {});

// The divergence of every row: teacher [rows, V], student [n rows, V] -> f32 [n rows], where a
// student's row is compared with the teacher's of the same index modulo `rows`. Not differentiable.
// Throws Error when the shapes do not fit.
Tensor kl_of_rows(const Tensor& teacher, const Tensor& student);

}  // namespace filigree
