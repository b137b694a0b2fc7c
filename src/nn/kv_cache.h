// Keys and values of the positions a model has already seen, so that generation computes each
// position once.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace filigree {

class KeyValueCache {
 public:
  // Memory for `capacity` positions in the layers from `first_layer` on; throws Error when an
  // extent is not positive.
  KeyValueCache(std::int64_t layers, std::int64_t batch, std::int64_t capacity,
                std::int64_t key_heads, std::int64_t head_width,
                DeviceKind device = DeviceKind::kCpu, DType dtype = DType::kF32,
                std::int64_t first_layer = 0);

  std::int64_t length() const { return length_; }  // positions that every layer holds
  std::int64_t capacity() const { return capacity_; }
  std::int64_t batch() const { return batch_; }
  void clear() { length_ = 0; }
  // Forgets all but the first `length` positions.
  void truncate(std::int64_t length);

  // Puts k and v [B, T, G, D] of one layer behind the positions already held, from either device.
  // Throws Error when they do not fit.
  void append(std::int64_t layer, const Tensor& k, const Tensor& v);
  // Counts the T positions appended by every layer; called once a forward pass.
  void advance(std::int64_t positions);

  const Tensor& keys(std::int64_t layer) const { return keys_[slot(layer)]; }
  const Tensor& values(std::int64_t layer) const { return values_[slot(layer)]; }

 private:
  std::size_t slot(std::int64_t layer) const {
    return static_cast<std::size_t>(layer - first_layer_);
  }

  std::int64_t first_layer_;
  std::int64_t batch_, capacity_, heads_, width_;
  std::int64_t length_ = 0;
  std::vector<Tensor> keys_, values_;  // [B, capacity, G, D] a layer
};

}  // namespace filigree
