// A transcoder as what a run trains: each process holds some of its features, and all hold the
// decoder biases and skips. With it is kept how often each feature is active of late.
#pragma once

#include <cstdint>
#include <vector>

#include "features/activation_source.h"
#include "features/transcoder.h"
#include "train/trainable.h"

namespace filigree {

struct TranscoderStart {
  std::uint64_t seed = 0;
  float threshold = 0.03f;  // of JumpReLU
  // The share of tokens at which each feature is active at first.
  double rate = 0.01;
};

// Encoders of random directions, whose length is about one, with biases such that each feature is
// active at the wanted share of the tokens given ([layers, tokens, width], scaled); decoders zero,
// decoder biases the mean of the targets.
void initialise(Transcoder& transcoder, const ActivationBatch& sample,
                const TranscoderStart& start);

// All values from another transcoder, whole and for activations as they are (fold_scales), whatever
// its activation: of JumpReLU its thresholds too. Throws Error where the shapes differ.
void begin_from(Transcoder& transcoder, Transcoder trained, const ActivationScales& scales);

class TranscoderTrainable : public Trainable {
 public:
  // The transcoder must outlive it. `settings` is of how it was made.
  TranscoderTrainable(Transcoder& transcoder, Settings start);

  Transcoder& transcoder() const { return transcoder_; }

  // The share of tokens at which each of this process's features was active, an average over some
  // past: f32 [layers, features] where the transcoder lies, and copied out layer by layer.
  Tensor& densities() { return densities_; }
  std::vector<std::vector<float>> density() const;

  std::vector<NamedParameter> parameters() const override;
  std::vector<NamedParameter> own_parameters() const override;
  Settings settings() const override;
  void save(const std::filesystem::path& folder, Communicator& ranks) const override;
  // Throws Error when it was saved by another number of processes.
  void restore(const std::filesystem::path& folder, Communicator& ranks) override;

 private:
  Transcoder& transcoder_;
  Settings start_;
  Tensor densities_;
};

// All features of all processes, on the CPU, on every process.
Transcoder gathered(const Transcoder& part, Communicator& ranks);

// For models as they are: the scales of training go into the weights.
void fold_scales(Transcoder& transcoder, const ActivationScales& scales);

}  // namespace filigree
