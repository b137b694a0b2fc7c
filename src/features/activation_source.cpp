#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/checksum.h"
#include "base/stopwatch.h"
#include "filigree/autograd.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "text/shard_permutation.h"
#include "train/weights_checksum.h"

namespace filigree {
namespace {

constexpr std::uint64_t kShuffleStream = 0x706f6f6c00000000;  // "pool", and its number
constexpr std::uint64_t kWindowSeed = 0x77696e646f770000;     // "window": another order than pools'
constexpr std::int64_t kScaleTokens = 1 << 14;

// On the CPU the pool is bf16: its rounding is far below what a transcoder leaves unexplained, and
// a million tokens take half the memory. On a GPU it is f32, as the operation that draws from it
// wants.
DType pool_dtype(DeviceKind device) {
  return device == DeviceKind::kCpu ? DType::kBf16 : DType::kF32;
}

// Rows of a bf16 matrix on the CPU; -1: a row of zeros.
void draw_rows(const Tensor& from, std::span<const std::int32_t> rows, float factor, float* to) {
  const std::int64_t width = from.size(1);
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from.data<Bf16>());
  parallel_for(static_cast<std::int64_t>(rows.size()), 64,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) {
                   const std::int32_t row = rows[static_cast<std::size_t>(r)];
                   float* out = to + r * width;
                   if (row < 0) {
                     std::fill_n(out, width, 0.0f);
                     continue;
                   }
                   bf16_to_f32(bits + row * width, out, static_cast<std::size_t>(width));
                   for (std::int64_t i = 0; i < width; ++i) out[i] *= factor;
                 }
               });
}

double sum_of_norms(const Tensor& rows) {
  const Tensor host = rows.on_host();
  const std::int64_t rows_there = host.size(0), width = host.size(1);
  const float* values = host.f32();
  double sum = 0.0;
  for (std::int64_t r = 0; r < rows_there; ++r) {
    double square = 0.0;
    for (std::int64_t i = 0; i < width; ++i) {
      const auto x = static_cast<double>(values[r * width + i]);
      square += x * x;
    }
    sum += std::sqrt(square);
  }
  return sum;
}

}  // namespace

ActivationSource::ActivationSource(const Model& model, TokenSplit split,
                                   const ActivationOptions& options, Communicator& ranks)
    : model_(model),
      split_(std::move(split)),
      options_(options),
      ranks_(ranks),
      model_checksum_(weights_checksum(model)) {
  require(options.length >= 2, "features: windows of {} tokens have none behind the first",
          options.length);
  require(options.tokens >= 1 && options.pool >= options.tokens && options.windows >= 1,
          "features: batches of {} tokens from a pool of {}, {} windows at a time", options.tokens,
          options.pool, options.windows);
  require(options.windows % ranks.size() == 0,
          "features: {} windows at a time cannot be shared by {} processes; give a multiple of {}",
          options.windows, ranks.size(), ranks.size());
  require(pool_tokens() < (std::int64_t{1} << 31), "features: a pool of {} tokens is too large",
          pool_tokens());
  pool_start_ = pool_end_ = loader_at({}).state();
}

std::int64_t ActivationSource::passes() const {
  const std::int64_t a_pass = options_.windows * (options_.length - 1);
  return (options_.pool + a_pass - 1) / a_pass;
}

std::int64_t ActivationSource::pool_tokens() const {
  return passes() * options_.windows * (options_.length - 1);
}

std::int64_t ActivationSource::batches_of_a_pool() const { return pool_tokens() / options_.tokens; }

std::uint64_t ActivationSource::pool_bytes(const ModelConfig& config,
                                           const ActivationOptions& options,
                                           const Placement& placement, int processes) {
  return static_cast<std::uint64_t>(options.pool) / static_cast<std::uint64_t>(processes) *
         static_cast<std::uint64_t>(config.layers * config.width * 2) *
         size_of(pool_dtype(placement.device));
}

ShardLoader ActivationSource::loader_at(const LoaderState& state) const {
  return ShardLoader(split_,
                     {.batch = options_.windows / ranks_.size(),
                      .length = options_.length,
                      .seed = options_.seed,
                      .rank = ranks_.rank(),
                      .world_size = ranks_.size()},
                     state);
}

std::int64_t ActivationSource::windows_of_a_batch(const ActivationOptions& options) {
  return std::max<std::int64_t>(1, options.tokens / (options.length - 1));
}

ShardLoader ActivationSource::window_loader_at(const LoaderState& state) const {
  return ShardLoader(split_,
                     {.batch = windows_of_a_batch(options_),
                      .length = options_.length,
                      .seed = options_.seed ^ kWindowSeed},
                     state);
}

bool ActivationSource::gives_windows() const {
  return options_.windows_from &&
         static_cast<std::int64_t>(pool_number_) * batches_of_a_pool() + taken_ >=
             *options_.windows_from;
}

ActivationBatch ActivationSource::next_windows() {
  const ActivationScales factors = scales();
  pool_.reset();  // its memory is for what goes through the model
  const NoGrad constant;
  ShardLoader loader = window_loader_at(windows_);
  const TokenBatch text = loader.next();
  windows_ = loader.state();
  const Placement& placement = model_.placement();
  const std::int64_t layers = model_.config().layers, width = model_.config().width;
  const std::int64_t windows = text.ids.size(0), length = options_.length;
  const Shape shape({layers, windows * (length - 1), width});
  ActivationBatch batch{Tensor::empty(shape, placement.precision, placement.device),
                        Tensor::empty(shape, DType::kF32, placement.device),
                        TextWindows{text.ids, text.targets, {}, factors}};
  const auto keep = [&](Tensor& to, std::int64_t layer, const Tensor& value, float factor) {
    const Variable behind = slice(Variable(value.to(DType::kF32)), 1, 1, length);
    const Tensor scaled = scale(behind, factor).value();
    to.rows(layer, layer + 1).copy_from(scaled.to(to.dtype()).reshape({1, shape[1], width}));
  };
  Taps taps;
  taps.stay_on_device();
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto i = static_cast<std::size_t>(l);
    taps.watch(options_.hooks.input_of(l), [&, l, i](std::string_view, const Tensor& value) {
      keep(batch.inputs, l, value, factors.input[i]);
    });
    taps.watch(options_.hooks.output_of(l), [&, l, i](std::string_view, const Tensor& value) {
      keep(batch.targets, l, value, factors.output[i]);
    });
  }
  batch.windows->hidden = model_.final_hidden(text.ids, {.taps = &taps}).value();
  return batch;
}

void ActivationSource::fill() {
  const DeviceKind device = model_.placement().device;
  wait_for(device);
  const Stopwatch watch;
  const std::uint64_t memory_before = pool_statistics(device).bytes_in_use;
  const std::int64_t layers = model_.config().layers, width = model_.config().width;
  const std::int64_t own_windows = options_.windows / ranks_.size();
  const std::int64_t kept = options_.length - 1;
  Pool pool;
  for (std::int64_t l = 0; l < layers; ++l)
    for (std::vector<Tensor>* tensors : {&pool.inputs, &pool.outputs})
      tensors->push_back(
          Tensor::empty({passes() * own_windows * kept, width}, pool_dtype(device), device));
  pool_memory_ = pool_statistics(device).bytes_in_use - memory_before;
  ShardLoader loader = loader_at(pool_start_);
  std::int64_t first = 0;  // row of the pass
  const auto keep = [&](Tensor& to, const Tensor& value) {
    const Tensor rows = value.to(to.dtype()).reshape({own_windows * options_.length, width});
    for (std::int64_t w = 0; w < own_windows; ++w)
      to.rows(first + w * kept, first + (w + 1) * kept)
          .copy_from(rows.rows(w * options_.length + 1, (w + 1) * options_.length));
  };
  Taps taps;
  taps.stay_on_device();
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto i = static_cast<std::size_t>(l);
    taps.watch(options_.hooks.input_of(l),
               [&, i](std::string_view, const Tensor& value) { keep(pool.inputs[i], value); });
    taps.watch(options_.hooks.output_of(l),
               [&, i](std::string_view, const Tensor& value) { keep(pool.outputs[i], value); });
  }
  for (std::int64_t pass = 0; pass < passes(); ++pass) {
    model_.final_hidden(loader.next().ids, {.taps = &taps});
    first += own_windows * kept;
    if (options_.filling) options_.filling(pass + 1, passes());
  }
  pool_end_ = loader.state();
  pool_ = std::move(pool);
  wait_for(device);
  filling_seconds_ += watch.seconds();
}

void ActivationSource::estimate_scales() {
  if (!pool_) fill();
  const std::size_t layers = pool_->inputs.size();
  const std::int64_t tokens =
      std::min(pool_->inputs[0].size(0), std::max<std::int64_t>(kScaleTokens / ranks_.size(), 1));
  std::vector<double> sums(2 * layers + 1);
  for (std::size_t l = 0; l < layers; ++l) {
    sums[l] = sum_of_norms(pool_->inputs[l].rows(0, tokens));
    sums[layers + l] = sum_of_norms(pool_->outputs[l].rows(0, tokens));
  }
  sums.back() = static_cast<double>(tokens);
  ranks_.sum(sums);
  const double root = std::sqrt(static_cast<double>(model_.config().width));
  ActivationScales scales;
  for (std::size_t i = 0; i < 2 * layers; ++i) {
    require(sums[i] > 0.0 && std::isfinite(sums[i]),
            "features: what the MLP of layer {} {} is zero or not finite, and nothing can be "
            "learnt from it",
            i % layers, i < layers ? "reads" : "writes");
    (i < layers ? scales.input : scales.output)
        .push_back(static_cast<float>(root * sums.back() / sums[i]));
  }
  scales_ = scales;
}

const ActivationScales& ActivationSource::scales() {
  if (!scales_) estimate_scales();
  return *scales_;
}

Tensor ActivationSource::drawn(const std::vector<Tensor>& layers,
                               const std::vector<std::int32_t>& tokens,
                               const std::vector<float>& scales, DType dtype) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const auto L = static_cast<std::int64_t>(layers.size());
  const std::int64_t width = layers[0].size(1);
  const DeviceKind device = layers[0].device();
  // Of one process there is nothing to add up, and the rows may be rounded at once.
  const bool alone = ranks_.size() == 1;
  Tensor batch;
  if (device == DeviceKind::kCpu) {
    batch = Tensor::empty({L, count, width});
    for (std::int64_t l = 0; l < L; ++l)
      draw_rows(layers[static_cast<std::size_t>(l)], tokens, scales[static_cast<std::size_t>(l)],
                batch.mutable_f32() + l * count * width);
  } else {
    batch = scaled_rows(layers, Tensor::from_ids({count}, tokens).to(device), scales,
                        alone ? dtype : DType::kF32);
  }
  // All but one process have zeros for a token.
  if (!alone)
    ranks_
        .start_sum(
            {std::span(batch.mutable_data<float>(), static_cast<std::size_t>(batch.elements()))},
            device)
        ->wait();
  return batch.to(dtype);
}

ActivationBatch ActivationSource::next() {
  if (gives_windows()) return next_windows();
  ActivationBatch batch = peek();
  ++taken_;
  return batch;
}

ActivationBatch ActivationSource::peek() {
  const ActivationScales& factors = scales();
  if (taken_ == batches_of_a_pool()) {
    pool_start_ = pool_end_;
    ++pool_number_;
    taken_ = 0;
    pool_.reset();  // before the next one is made
  }
  if (!pool_) fill();
  const IndexPermutation order(static_cast<std::uint64_t>(pool_tokens()), options_.seed,
                               kShuffleStream + pool_number_);
  // Windows of a pass are dealt to the processes in blocks of rows.
  const std::int64_t kept = options_.length - 1, own = options_.windows / ranks_.size();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(options_.tokens));
  parallel_for(options_.tokens, 128, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const auto place = static_cast<std::uint64_t>(taken_ * options_.tokens + b);
      const auto token = static_cast<std::int64_t>(order(place));
      const std::int64_t window = token / kept, pass = window / options_.windows,
                         row = window % options_.windows;
      const bool here = row / own == ranks_.rank();
      tokens[static_cast<std::size_t>(b)] =
          here ? static_cast<std::int32_t>((pass * own + row % own) * kept + token % kept) : -1;
    }
  });
  const Placement& placement = model_.placement();
  return {drawn(pool_->inputs, tokens, factors.input, placement.precision),
          drawn(pool_->outputs, tokens, factors.output, DType::kF32)};
}

Settings ActivationSource::settings() const {
  Settings settings({{"data", checksum_text(split_.fingerprint())},
                     {"model", checksum_text(model_checksum_)},
                     {"batch", options_.tokens},
                     {"pool", options_.pool},
                     {"context", options_.length},
                     {"windows", options_.windows},
                     {"input_hook", options_.hooks.input},
                     {"output_hook", options_.hooks.output},
                     {"seed", options_.seed}});
  if (options_.windows_from) settings.add(Setting{"windows_from", *options_.windows_from});
  return settings;
}

nlohmann::json ActivationSource::state() const {
  nlohmann::json state = {{"epoch", pool_start_.epoch},
                          {"position", pool_start_.position},
                          {"pool", pool_number_},
                          {"taken", static_cast<std::uint64_t>(taken_)}};
  if (options_.windows_from) {
    state["windows_epoch"] = windows_.epoch;
    state["windows_position"] = windows_.position;
  }
  if (scales_) {
    state["input_scales"] = scales_->input;
    state["output_scales"] = scales_->output;
  }
  return state;
}

void ActivationSource::restore(const nlohmann::json& state) {
  const auto number = [&](const char* key) {
    require(state.is_object() && state.contains(key) && state[key].is_number_unsigned(),
            "resume: the checkpoint's place in the activations has no '{}'", key);
    return state[key].get<std::uint64_t>();
  };
  const auto factors = [&](const char* key) {
    std::vector<float> values;
    require(state.contains(key) && state[key].is_array() &&
                state[key].size() == static_cast<std::size_t>(model_.config().layers),
            "resume: the checkpoint has no '{}' of {} layers", key, model_.config().layers);
    for (const nlohmann::json& value : state[key]) {
      require(value.is_number() && std::isfinite(value.get<float>()) && value.get<float>() > 0.0f,
              "resume: '{}' of the checkpoint holds what is no positive number", key);
      values.push_back(value.get<float>());
    }
    return values;
  };
  const LoaderState start{number("epoch"), number("position")};
  pool_start_ = loader_at(start).state();
  pool_number_ = number("pool");
  const std::uint64_t taken = number("taken");
  require(taken <= static_cast<std::uint64_t>(batches_of_a_pool()),
          "resume: {} batches were taken from a pool of {}", taken, batches_of_a_pool());
  taken_ = static_cast<std::int64_t>(taken);
  scales_ = {factors("input_scales"), factors("output_scales")};
  if (options_.windows_from)
    windows_ = window_loader_at({number("windows_epoch"), number("windows_position")}).state();
  pool_.reset();
  // A pool that is used up is not filled again, only passed over.
  if (taken_ == batches_of_a_pool()) {
    ShardLoader loader = loader_at(pool_start_);
    for (std::int64_t pass = 0; pass < passes(); ++pass) loader.next();
    pool_end_ = loader.state();
  }
}

}  // namespace filigree
