// The queries, keys and values of an attention operation: three variables, or one that holds them
// side by side.
#pragma once

#include "filigree/autograd.h"
#include "ops/attention/attention_shape.h"
#include "tensor/dispatch.h"

namespace filigree {

class AttentionOperands {
 public:
  // Throws Error starting with `op` when they do not fit together.
  AttentionOperands(const char* op, const Variable& q, const Variable& k, const Variable& v,
                    std::int64_t keys, float scale, const ScoreMask& mask = {});
  // From [B, T, (H + 2 G) D].
  AttentionOperands(const char* op, const Variable& packed, std::int64_t heads,
                    std::int64_t key_heads, float scale);

  const AttentionShape& shape() const { return shape_; }
  const Tensor& like() const { return q_.value(); }  // for type and device
  const Variable& q() const { return q_; }
  const Variable& k() const { return k_; }
  const Variable& v() const { return v_; }
  Shape result_shape() const { return {shape_.B, shape_.Tq, shape_.H, shape_.D}; }

  // The part of the kernels' arguments that they are.
  template <typename T, typename Args>
  void fill(Args& args) const {
    args.shape = shape_;
    args.q = q_.value().data<T>();
    args.k = k_.value().data<T>() + k_offset_;
    args.v = v_.value().data<T>() + v_offset_;
  }

  // Room for what rounding takes from the result z, which the kernels of the GPU need in bf16 for
  // an exact gradient; undefined elsewhere.
  Tensor room_for_error(const Tensor& z) const;

  // Runs the kernels of the backward pass and adds the gradients to those of the variables;
  // `fill_rest` fills in what the operands do not know of the arguments.
  template <typename Fill>
  void add_gradients(const char* op, const Tensor& dz, const Fill& fill_rest) const {
    require(shape_.Tk == k_.size(1), "{}: a partly filled cache has no gradient", op);
    Tensor dq = dz.like(q_.shape());
    Tensor dk = packed_ ? dq : dz.like(k_.shape()), dv = packed_ ? dq : dz.like(v_.shape());
    const auto args = [&](auto type) {
      using T = decltype(type);
      AttentionGradArgs<T> back;
      fill<T>(back);
      back.dz = dz.data<T>();
      back.dq = dq.mutable_data<T>();
      back.dk = dk.mutable_data<T>() + k_offset_;
      back.dv = dv.mutable_data<T>() + v_offset_;
      fill_rest(back);
      return back;
    };
    dispatch(
        op, dz, [&] { cpu::attention_grad(args(float())); },
        [&](auto type) { cuda::attention_grad(args(type)); });
    if (q_.requires_grad()) q_.accumulate_grad(std::move(dq));
    if (packed_) return;
    if (k_.requires_grad()) k_.accumulate_grad(std::move(dk));
    if (v_.requires_grad()) v_.accumulate_grad(std::move(dv));
  }

 private:
  Variable q_, k_, v_;  // all the same when packed
  bool packed_ = false;
  std::int64_t k_offset_ = 0, v_offset_ = 0;
  AttentionShape shape_;
};

// Of q, k and v side by side, [B, T, (H + 2 G) D]. Throws Error starting with `op` otherwise.
AttentionShape packed_shape(const char* op, const Shape& packed, std::int64_t heads,
                            std::int64_t key_heads, float scale);

}  // namespace filigree
