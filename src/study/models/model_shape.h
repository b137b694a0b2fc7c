// A GPT-2 of a chosen size with random weights, for measuring, for showing and for training.
#pragma once

#include <cstdint>
#include <string>

#include "filigree/model/config.h"

namespace filigree::study {

// The smallest GPT-2 that was published, with 124M parameters.
struct ModelShape {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;

  // Throws RequestError when the width is not a multiple of the heads.
  ModelConfig config() const;
  std::string text() const;  // "GPT-2 with 12 layers, 12 heads, width 768, ..."
};

}  // namespace filigree::study
