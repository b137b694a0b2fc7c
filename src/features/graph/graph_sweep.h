// Sweeps through a frozen model, many readings or sources at a time: downwards, the gradient of
// each reading with respect to the stream, layer by layer; upwards, what each source becomes. All
// is matrix products, computed where the frozen model's device is. Arrays are [positions, batch,
// width], positions those that can matter.
#pragma once

#include <functional>
#include <span>

#include "filigree/trace.h"
#include "ops/regions/regions.h"

namespace filigree {

struct SweepWatch {
  // Downwards: the gradients behind and before a layer's parts, as they lie.
  std::function<void(std::int64_t layer, const Tensor& gradient)> behind_mlp;
  std::function<void(std::int64_t layer, const Tensor& gradient)> behind_attention;
  std::function<void(const Tensor& gradient)> at_embedding;
  // Of each attention layer what bypasses it: downwards the gradient of the stream beside it,
  // upwards the stream before it.
  std::function<void(std::int64_t layer, const Tensor& stream)> beside_attention;
  // Downwards the gradient of what a head mixes, upwards its values without the denominators of
  // norms (those are in the pattern): [positions, batch, D].
  std::function<void(std::int64_t layer, std::int64_t head, const Tensor& part)> head;
};

// The frozen model and the sources must outlive it, and must not change.
class Sweep {
 public:
  explicit Sweep(const FrozenModel& frozen);  // downwards alone
  Sweep(const FrozenModel& frozen, const GraphSources& sources);

  // The readings' gradients, from the last stage that is read down to the embeddings.
  void down(std::span<const StreamReading* const> readings, const SweepWatch& watch) const;

  // What each source becomes, from the embeddings to the end.
  void up(std::span<const std::int32_t> chosen, const SweepWatch& watch) const;

  // Direct effects [readings, sources + 1] of all sources on each reading, the biases' last, on the
  // CPU; with the readings' own constants among these, a row sums up to the reading's value.
  Tensor effects(std::span<const StreamReading* const> readings) const;

 private:
  // Of a frozen layer, on the device.
  struct Matrices {
    Tensor value, output, pattern, skip;
  };
  // What is written at one stage, and which columns of the effects it belongs to: neighbouring ones
  // are taken together, and those that several positions write, the biases, at once.
  struct Writes {
    const StreamWrites* of = nullptr;
    Tensor rows;
    struct Run {
      std::int64_t position = 0, first = 0;  // of the position's writes
    };
    struct Columns {
      std::int64_t source = 0, count = 0;
      std::vector<Run> runs;
    };
    std::vector<Columns> columns;
  };

  Writes writes_of(const StreamWrites& writes) const;
  void heads(std::int64_t layer, const Tensor& from, Tensor& to, Tensor& parts, Tensor& mixed,
             const SweepWatch& watch, bool down) const;
  void skip(std::int64_t layer, const Tensor& from, Tensor& to, bool down) const;
  void contract(const Writes& writes, const Tensor& gradient, Tensor& rows) const;

  const FrozenModel& frozen_;
  const GraphSources* sources_ = nullptr;
  DeviceKind device_;
  std::vector<Matrices> layers_;
  std::vector<Writes> mlp_, attention_;
  Writes embedding_;
};

}  // namespace filigree
