// Rows of numbers in a mapped file, f32, bf16, f16 or integers with scales, of which those are read
// that are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "filigree/tensor.h"
#include "io/safetensors.h"

namespace filigree {

// A tensor of a file, as layouts of transcoders are made of.
struct StoredTensor {
  TensorView view;
  std::shared_ptr<const MappedFile> file;

  // Throws Error, naming file and tensor, unless it has this shape; -1 stands for any extent.
  void check_shape(std::span<const std::int64_t> shape) const;
  // And unless it has numbers of a kind that can be read as they are.
  void check(std::span<const std::int64_t> shape) const;
  std::string label() const;
  Tensor read() const;  // all of it as f32

  // Part `index` of the first axis.
  StoredTensor part(std::int64_t index) const;
};

class StoredMatrix {
 public:
  // Rows of `width` numbers, each multiplied by `factor`. With `by_column` the file has it
  // transposed, as [width, rows]. The tensor's number of elements must be right already.
  StoredMatrix(StoredTensor tensor, std::int64_t rows, std::int64_t width, bool by_column = false,
               float factor = 1.0f);
  // Rows of I8; each stretch of the tensor's last extent is multiplied by its own scale.
  StoredMatrix(StoredTensor integers, Tensor scales, std::int64_t rows, std::int64_t width);

  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return width_; }

  // Rows [begin, begin + count), f32; a view of the file where that is the same.
  Tensor block(std::int64_t begin, std::int64_t count) const;
  // One row, to `to`, which has room for it.
  void read_row(std::int64_t row, float* to) const;
  // The memory that reading a block took.
  void release(std::int64_t begin, std::int64_t count) const;

 private:
  void read(std::int64_t first, std::int64_t count, float* to) const;  // elements as they lie

  StoredTensor tensor_;
  std::int64_t rows_, width_;
  bool by_column_;
  float factor_;
  Tensor scales_;  // [stretches] of I8
};

}  // namespace filigree
