// A GPT-2 of a chosen size with random weights, for measuring, for showing and for training.
#pragma once

#include <cstdint>
#include <string>

#include "model/config.h"

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
};

// The configuration of a model, of a config.json by itself (a name that ends so), or, as "gpt2"
// where no model is called so, of the smallest GPT-2 that was published.
ModelConfig named_config(const std::string& name);

}  // namespace filigree::study
