#include "ops/attention/attention_shape.h"

#include <cmath>

#include "filigree/error.h"
#include "tensor/dispatch.h"

namespace filigree {

AttentionShape attention_shape(const char* op, const Shape& q, const Shape& k, std::int64_t keys,
                               float scale, const ScoreMask& mask) {
  require(q.rank() == 4 && k.rank() == 4 && q[0] == k[0] && q[3] == k[3] && k[2] > 0 &&
              q[2] % k[2] == 0 && q[3] > 0,
          "{}: queries {} and keys or values {} do not fit: [B, T, heads, D] with equal B and D, "
          "and key heads that divide the query heads",
          op, q.to_string(), k.to_string());
  const std::int64_t Tk = keys < 0 ? k[1] : keys;
  require(Tk <= k[1] && q[1] <= Tk, "{}: {} queries against {} of {} keys", op, q[1], Tk, k[1]);
  if (scale == 0.0f) scale = 1.0f / std::sqrt(static_cast<float>(q[3]));
  require(mask.window >= 0 && mask.soft_cap >= 0.0f && std::isfinite(mask.soft_cap),
          "{}: a window of {} keys and a soft cap of {} must not be negative", op, mask.window,
          mask.soft_cap);
  require(!mask.bidirectional || mask.window == 0,
          "{}: a window of {} keys needs causal attention; bidirectional attention has none", op,
          mask.window);
  AttentionShape shape = {q[0],        q[1],        Tk,   q[2], k[2], q[3], k[1] * k[2] * k[3],
                          q[2] * q[3], k[2] * k[3], scale};
  shape.window = mask.window < Tk ? mask.window : 0;  // one that holds all keys is none
  shape.soft_cap = mask.soft_cap;
  shape.bidirectional = mask.bidirectional;
  return shape;
}

void require_alike(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* tensor : tensors) {
    require_same_device(op, first, *tensor);
    require(tensor->dtype() == first.dtype(), "{}: the inputs are {} and {}; they must agree", op,
            name_of(first.dtype()), name_of(tensor->dtype()));
  }
}

}  // namespace filigree
