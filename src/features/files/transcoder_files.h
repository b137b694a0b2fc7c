// Transcoders in files. What is written is circuit-tracer's layout, so that it loads them as they
// are; read are those of
//
//   circuit-tracer   config.yaml beside W_enc_0.safetensors, W_dec_0.safetensors, ... (cross-layer)
//                    or layer_0.safetensors, ... (per-layer, or the files that `transcoders` lists)
//   CLT-Forge        a checkpoint: one safetensors file; its scales are folded in
//   sparsify         a folder for each layer (layers.0.mlp) with cfg.json and a safetensors file
//   Gemma Scope      a folder for each layer (layer_0) with params.npz somewhere inside
//
// in f32, bf16 and f16, of circuit-tracer's also in 8 bits (matrix_type.h), which it does not know.
// docs/features.md has the tensors of each.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "features/dictionary.h"
#include "io/matrix_type.h"

namespace filigree {

struct TranscoderExport {
  std::string model_name = {};
  FeatureHooks hooks = {};
  // Of each layer, what activations must exceed: of top-k and batch-top-k, which the layout does
  // not have. The features of a layer share it.
  std::vector<float> thresholds = {};
  MatrixType dtype = MatrixType::kF32;      // biases, thresholds and, with i8, skips are f32
  std::string scan = {};                    // where viewers find the features' pages; may be empty
  std::int64_t k = 0;                       // of top-k that stays so, instead of thresholds
  NotFinite not_finite = NotFinite::kKeep;  // of i8 they are always refused
};

// Replaces what a transcoder left in the folder. config.yaml is written last, after checksums.json,
// so that a folder with it is complete. Scales of inputs and outputs must be folded in already.
// Throws Error for a part of a transcoder, and for top-k without thresholds.
void write_transcoder(const std::filesystem::path& folder, const Transcoder& transcoder,
                      const TranscoderExport& options);

// Maps the files; nothing but biases and thresholds is read before it is needed. Throws Error for a
// folder that is none of the above, and for tensors that do not fit, naming file and tensor.
std::unique_ptr<FeatureDictionary> open_dictionary(const std::filesystem::path& path);

struct RewrittenTranscoder {
  TranscoderShape shape;
  std::string model_name;
  std::uint64_t bytes = 0;  // of the files
};
// The transcoder of `path` written anew into another folder, with one matrix in memory at a time.
// Hooks and k are its own, the model's name and scan too where the options have none.
RewrittenTranscoder rewrite_transcoder(const std::filesystem::path& path,
                                       const std::filesystem::path& folder,
                                       TranscoderExport options);

struct LoadedTranscoder {
  Transcoder transcoder;
  FeatureHooks hooks;
  std::int64_t k = 0;  // of top-k
};
// All of it in memory, for work that uses all of it. Thresholds go through their logarithms, and so
// may differ in their last bit.
LoadedTranscoder load_transcoder(const std::filesystem::path& path);

}  // namespace filigree
