// What a run trains. The loop (trainer.h) and the checkpoints (checkpoint.h) know only this: a
// language model is one (model_trainable.h), and so may be anything that has parameters.
//
// Ranks that train together hold the same parameters, or each a part of them (own_parameters): what
// is too large for one, such as a dictionary of features, is split. Gradients of the former are
// summed over the ranks, those of the latter are each rank's own, and so are their moments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "autograd/named_parameter.h"
#include "dist/communicator.h"
#include "train/settings.h"

namespace filigree {

class Trainable {
 public:
  virtual ~Trainable() = default;

  // What is trained, the same on every rank.
  virtual std::vector<NamedParameter> parameters() const = 0;
  // Of what the ranks hold together, the part of this one.
  virtual std::vector<NamedParameter> own_parameters() const { return {}; }

  // What decides the result of a run that begins with it as it is: sizes, and where its values come
  // from. The same on every rank, and in the process that resumes the run.
  virtual Settings settings() const = 0;

  // Of the values that are the same on every rank, as they are. By default of parameters().
  virtual std::uint64_t checksum() const;

  // By default for all of the parameters.
  virtual void set_requires_grad(bool on);
  virtual void clear_grads();

  // On every rank before it is saved, and when the run ends: whatever follows the parameters is
  // brought up to date.
  virtual void before_save() {}

  // Writes into a folder, which is there, all that it takes to go on from the same bits; and reads
  // it back into a thing of the same shape, or throws Error. Called on every rank: the first one
  // writes what all have alike, each its own part.
  virtual void save(const std::filesystem::path& folder, Communicator& ranks) const = 0;
  virtual void restore(const std::filesystem::path& folder, Communicator& ranks) = 0;
};

// Of names and values, in this order; each parameter goes on from `seed`, which begins it.
std::uint64_t parameters_checksum(const std::vector<NamedParameter>& parameters,
                                  std::uint64_t seed = 0);

// Copies values by name into parameters of the same names and shapes, on their device. Throws Error
// with `source` when they differ.
void restore_parameters(const std::vector<NamedParameter>& stored,
                        const std::vector<NamedParameter>& into, const std::string& source);

}  // namespace filigree
