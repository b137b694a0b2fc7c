#include <algorithm>

#include "filigree/error.h"
#include "filigree/layers.h"
#include "ops/layout/copy_blocks.h"

namespace filigree {

KeyValueCache::KeyValueCache(std::int64_t layers, std::int64_t batch, std::int64_t capacity,
                             std::int64_t key_heads, std::int64_t head_width, DeviceKind device,
                             DType dtype, std::int64_t first_layer)
    : first_layer_(first_layer),
      batch_(batch),
      capacity_(capacity),
      heads_(key_heads),
      width_(head_width) {
  require(layers > 0 && batch > 0 && capacity > 0 && key_heads > 0 && head_width > 0,
          "key-value cache: {} layers, batch {}, {} positions, {} heads of {} must all be positive",
          layers, batch, capacity, key_heads, head_width);
  for (std::int64_t l = 0; l < layers; ++l) {
    keys_.push_back(Tensor::empty({batch, capacity, key_heads, head_width}, dtype, device));
    values_.push_back(keys_.back().like(keys_.back().shape()));
  }
}

void KeyValueCache::truncate(std::int64_t length) {
  require(length >= 0 && length <= length_, "key-value cache: cannot keep {} of {} positions",
          length, length_);
  length_ = length;
  if (length == 0) longest_run_ = 0;
}

void KeyValueCache::append(std::int64_t layer, const Tensor& k, const Tensor& v) {
  require(layer >= first_layer_ && slot(layer) < keys_.size(),
          "key-value cache: there is no layer {}", layer);
  const std::int64_t T = k.size(1);
  require(
      k.shape() == v.shape() && k.shape() == Shape({batch_, T, heads_, width_}),
      "key-value cache: keys {} and values {} do not fit a cache of batch {} with {} heads of {}",
      k.shape().to_string(), v.shape().to_string(), batch_, heads_, width_);
  require(length_ + T <= capacity_,
          "key-value cache: {} positions and {} more do not fit its capacity of {}", length_, T,
          capacity_);
  const std::int64_t row = heads_ * width_;
  const auto copy = [&](const Tensor& from, Tensor& to) {
    copy_blocks(batch_, T * row, from.to(to.device()).to(to.dtype()), {0, T * row}, to,
                {length_ * row, capacity_ * row});
  };
  copy(k, keys_[slot(layer)]);
  copy(v, values_[slot(layer)]);
}

void KeyValueCache::advance(std::int64_t positions, std::int64_t length) {
  length_ += positions;
  longest_run_ = std::max({longest_run_, length_, length});
}

}  // namespace filigree
