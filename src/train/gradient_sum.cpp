#include "train/gradient_sum.h"

#include <span>

namespace filigree {

void GradientSum::leave_out(const std::vector<NamedParameter>& own) {
  for (const NamedParameter& parameter : own) left_out_.insert(parameter.variable.id());
}

void GradientSum::watch(Tape& tape) {
  if (!ranks_.alone()) tape.watch_leaves([this](const Variable& leaf) { add(leaf); });
}

void GradientSum::add(const Variable& leaf) {
  for (const std::unique_ptr<PendingSum>& sum : pending_) sum->advance();
  if (!leaf.grad().defined()) return;  // nothing depends on it, on any rank
  if (left_out_.contains(leaf.id())) return;
  const std::size_t bytes = leaf.grad().bytes();
  // What fills a bucket alone is not copied into one with others.
  if (!bucket_.empty() && filled_ + bytes > bucket_bytes_) start_bucket();
  bucket_.push_back(leaf);
  filled_ += bytes;
  if (filled_ >= bucket_bytes_) start_bucket();
}

void GradientSum::start_bucket() {
  std::vector<std::span<float>> arrays;
  for (const Variable& leaf : bucket_) {
    Tensor& gradient = leaf.grad_to_add_into();
    arrays.emplace_back(gradient.mutable_data<float>(),
                        static_cast<std::size_t>(gradient.elements()));
  }
  const DeviceKind device = bucket_[0].grad().device();
  started_.insert(started_.end(), bucket_.begin(), bucket_.end());
  bucket_.clear();
  filled_ = 0;
  pending_.push_back(ranks_.start_sum(std::move(arrays), device));
}

void GradientSum::finish() {
  if (!bucket_.empty()) start_bucket();
  for (const std::unique_ptr<PendingSum>& sum : pending_) sum->wait();
  pending_.clear();
  started_.clear();
}

}  // namespace filigree
