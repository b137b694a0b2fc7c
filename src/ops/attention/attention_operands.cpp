#include "ops/attention/attention_operands.h"

#include <cmath>

#include "filigree/autograd.h"
#include "filigree/error.h"

namespace filigree {

AttentionOperands::AttentionOperands(const char* op, const Variable& q, const Variable& k,
                                     const Variable& v, std::int64_t keys, float scale,
                                     const ScoreMask& mask)
    : q_(q), k_(k), v_(v), shape_(attention_shape(op, q.shape(), k.shape(), keys, scale, mask)) {
  require(k.shape() == v.shape(), "{}: keys {} and values {} differ in shape", op,
          k.shape().to_string(), v.shape().to_string());
  require_alike(op, {&q.value(), &k.value(), &v.value()});
}

AttentionOperands::AttentionOperands(const char* op, const Variable& packed, std::int64_t heads,
                                     std::int64_t key_heads, float scale)
    : q_(packed),
      k_(packed),
      v_(packed),
      packed_(true),
      shape_(packed_shape(op, packed.shape(), heads, key_heads, scale)) {
  k_offset_ = heads * shape_.D, v_offset_ = (heads + key_heads) * shape_.D;
}

Tensor AttentionOperands::room_for_error(const Tensor& z) const {
  const bool wanted = z.on_gpu() && z.dtype() == DType::kBf16 && needs_grad({&q_, &k_, &v_});
  return wanted ? z.like(z.shape()) : Tensor();
}

AttentionShape packed_shape(const char* op, const Shape& packed, std::int64_t heads,
                            std::int64_t key_heads, float scale) {
  const std::int64_t all = heads + 2 * key_heads;
  require(packed.rank() == 3 && heads > 0 && key_heads > 0 && heads % key_heads == 0 &&
              packed[2] > 0 && packed[2] % all == 0,
          "{}: {} is not [B, T, (H + 2 G) D] with {} query heads and {} key heads", op,
          packed.to_string(), heads, key_heads);
  const std::int64_t B = packed[0], T = packed[1], token = packed[2], D = token / all;
  if (scale == 0.0f) scale = 1.0f / std::sqrt(static_cast<float>(D));
  return {B, T, T, heads, key_heads, D, T * token, token, token, scale};
}

}  // namespace filigree
