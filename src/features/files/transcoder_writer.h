// Writes circuit-tracer's layout a layer at a time. Rows are asked for in blocks, so that no more
// is held than one matrix as it is stored.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "filigree/features.h"
#include "io/safetensors_writer.h"

namespace filigree {

struct LayerToWrite {
  // Rows [begin, begin + count), f32 on the CPU. They may be asked for twice.
  using Rows = std::function<Tensor(std::int64_t begin, std::int64_t count)>;
  Rows encoder;         // [count, width]
  Rows decoder;         // [count, reach * width]
  Tensor encoder_bias;  // [features]
  Tensor threshold;     // [features], undefined without
  Tensor decoder_bias;  // [width]
  Tensor skip;          // [width, width], undefined without
};

class TranscoderWriter {
 public:
  // Removes what a transcoder left in the folder. Of the options, thresholds are not looked at.
  TranscoderWriter(std::filesystem::path folder, const TranscoderShape& shape,
                   TranscoderExport options);

  // Layer 0, then 1, ...
  void add(const LayerToWrite& layer);
  // checksums.json, then config.yaml, with which the folder is complete.
  void commit();
  std::uint64_t bytes() const { return bytes_; }  // of the layers so far

 private:
  // Of shape `rows_shape` and the width.
  void add_matrix(std::vector<TensorToWrite>& tensors, const std::string& name,
                  std::vector<std::int64_t> rows_shape, const LayerToWrite::Rows& rows) const;
  // As they are, or as `type` has them; where they are refused, checked when their turn comes.
  TensorToWrite numbers_to_write(const std::string& name, const Tensor& tensor,
                                 MatrixType type) const;
  void check_finite(const std::string& name, const Tensor& numbers, MatrixType type) const;
  void write_file(const std::string& name, std::vector<TensorToWrite> tensors);

  std::filesystem::path folder_;
  TranscoderShape shape_;
  TranscoderExport options_;
  std::vector<std::string> files_;
  std::int64_t layers_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace filigree
