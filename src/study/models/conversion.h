// A model folder written anew, with one file of weights in the type that is asked for, adapters
// merged, mixed with another model, its gates more or less open, and its tokenizer beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/matrix_type.h"
#include "model/model.h"
#include "study/json.h"

namespace filigree::study {

struct ConversionRequest {
  std::string model = {};  // folder or name
  std::filesystem::path out = {};
  MatrixType dtype = MatrixType::kF32;  // of the weights
  // Of weights as they were, and as `dtype` has them.
  NotFinite not_finite = NotFinite::kRefuse;
  float raise_gates = 0.0f;  // added to the bias of every gate: above 0 opens more edges
  std::string config = {};   // config.json, or a model that has one; empty: that of `model`
  std::optional<float> gate_bias = {};  // puts a gate of this bias on every head
  std::string mix_with = {};            // folder or name of another model of the same shape
  double mix_share = 0.5;               // of that model in the average
};

struct Conversion {
  ConversionRequest request;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;  // of the file of weights
  bool tokenizer = false;   // one was there to take along
};

// Throws Error when `out` holds a model already, when gates are to be raised and there are none,
// when gates are to be put on and there are some, for a model to mix with of another shape or
// tokenizer, and for weights that are not finite or too large for the type.
Conversion convert_model(const ConversionRequest& request);

Json to_json(const Conversion& conversion);

// The parts that others write models with, too. Throws Error when `out` holds a model.
void refuse_model_in(const std::filesystem::path& out);
// The model as a folder, with the tokenizer of `from`, if there is one. Its size in bytes.
std::uint64_t save_converted(const Model& model, const std::filesystem::path& from,
                             const std::filesystem::path& out, MatrixType dtype,
                             NotFinite not_finite = NotFinite::kRefuse);

}  // namespace filigree::study
