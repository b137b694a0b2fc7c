// A language model as what a run trains: all its weights, or its adapters alone where it has some,
// or its vectors alone, and with `gate_biases` the biases of its gates. A checkpoint of it is a
// model folder, which load_model reads.
#pragma once

#include <optional>

#include "model/model.h"
#include "train/trainable.h"

namespace filigree {

struct ModelTraining {
  bool gate_biases = false;  // every head learns its own, under the names gate.0, gate.1, ...
  // Biases and norms alone: the matrices stay as they are, so that those of 8 bits lose nothing
  // when they are written again.
  bool vectors_only = false;
  // The seed of a model that was made: its weights follow from it. Without one they were read, and
  // runs are told apart by their checksum.
  std::optional<std::uint64_t> drawn_from = {};
};

class ModelTrainable : public Trainable {
 public:
  // The model must outlive it, with the gate and the adapters that it has now.
  explicit ModelTrainable(Model& model, const ModelTraining& training = {});

  Model& model() const { return model_; }

  std::vector<NamedParameter> parameters() const override;
  Settings settings() const override;
  // Of all weights and gate biases, trained or not (weights_checksum.h).
  std::uint64_t checksum() const override;
  void set_requires_grad(bool on) override;
  void clear_grads() override;
  // The configuration follows the gate biases.
  void before_save() override;
  // Weights and adapters apart: merging rounds, and the run must go on from the same bits.
  void save(const std::filesystem::path& folder, Communicator& ranks) const override;
  // Throws Error when the adapters' rank or alpha is another.
  void restore(const std::filesystem::path& folder, Communicator& ranks) override;

 private:
  std::vector<NamedParameter> gate_parameters() const;

  Model& model_;
  ModelTraining training_;
};

}  // namespace filigree
