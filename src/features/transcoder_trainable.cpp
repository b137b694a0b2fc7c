#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/file_status.h"
#include "filigree/error.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "filigree/runtime.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

namespace filigree {
namespace {

constexpr std::uint64_t kEncoderStream = 0x656e636f64000000;  // "encod", and the layer

std::string own_file(const Communicator& ranks) {
  return fmt::format("features-{:05}-of-{:05}.safetensors", ranks.rank(), ranks.size());
}

// Writes parameters, each on the CPU while it is written, and further rows of numbers.
using NamedNumbers = std::vector<std::pair<std::string, std::span<const float>>>;
void write_parameters(const std::filesystem::path& file,
                      const std::vector<NamedParameter>& parameters, const NamedNumbers& numbers) {
  std::vector<TensorToWrite> tensors;
  Tensor current;
  for (const NamedParameter& parameter : parameters) {
    const auto extents = parameter.variable.shape().extents();
    tensors.push_back({parameter.name,
                       TensorKind::kF32,
                       {extents.begin(), extents.end()},
                       [&current, variable = parameter.variable] {
                         current = variable.value().to(DeviceKind::kCpu);
                         return std::span(current.raw(), current.bytes());
                       }});
  }
  for (const auto& [name, values] : numbers)
    tensors.push_back(
        {name, TensorKind::kF32, {static_cast<std::int64_t>(values.size())}, [values = values] {
           return std::as_bytes(values);
         }});
  write_safetensors(file, tensors, {});
}

struct StoredPart {
  std::string path;
  SafetensorsFile file;
  explicit StoredPart(const std::filesystem::path& from)
      : path(from.string()), file(SafetensorsFile::open(from)) {}
};

Tensor read_tensor(const StoredPart& part, const std::string& name, const Shape& shape) {
  const TensorView* view = part.file.find(name);
  require(view != nullptr && Shape(view->shape) == shape, "'{}': there is no tensor '{}' of {}",
          printable(part.path), name, shape.to_string());
  Tensor tensor = Tensor::empty(shape);
  read_f32(*view, {tensor.mutable_f32(), static_cast<std::size_t>(tensor.elements())});
  return tensor;
}

void read_parameters(const StoredPart& part, const std::vector<NamedParameter>& parameters) {
  std::vector<NamedParameter> stored;
  stored.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters)
    stored.push_back(
        {parameter.name, Variable(read_tensor(part, parameter.name, parameter.variable.shape()))});
  restore_parameters(stored, parameters, part.path);
}

std::string density_name(std::size_t layer) { return fmt::format("density_{}", layer); }

void scale_in_place(Tensor& tensor, float factor) {
  float* values = tensor.mutable_f32();
  const std::int64_t count = tensor.elements();
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

// b = threshold - the value that h exceeds at `rate` of the tokens, of each feature.
Tensor biases_for_rate(const Tensor& h, float threshold, double rate) {
  const std::int64_t tokens = h.size(0), features = h.size(1);
  Tensor bias = Tensor::empty({features});
  const float* from = h.f32();
  float* to = bias.mutable_f32();
  const auto active =
      std::clamp<std::int64_t>(std::llround(rate * static_cast<double>(tokens)), 1, tokens);
  parallel_for(features, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> values(static_cast<std::size_t>(tokens));
    for (std::int64_t f = begin; f < end; ++f) {
      for (std::int64_t t = 0; t < tokens; ++t)
        values[static_cast<std::size_t>(t)] = from[t * features + f];
      const auto at = values.begin() + (active - 1);
      std::nth_element(values.begin(), at, values.end(), std::greater<>());
      to[f] = threshold - *at;
    }
  });
  return bias;
}

}  // namespace

void initialise(Transcoder& transcoder, const ActivationBatch& sample,
                const TranscoderStart& start) {
  const TranscoderShape& shape = transcoder.shape();
  const FeatureRange& own = transcoder.features();
  const DeviceKind device = transcoder.placement().device;
  const bool jumps = transcoder.activation() == FeatureActivation::kJumpRelu;
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
    // A feature has the same direction whichever process holds it.
    Tensor encoder = Tensor::empty({own.count(), shape.width});
    fill_normal({encoder.mutable_f32(), static_cast<std::size_t>(encoder.elements())}, start.seed,
                kEncoderStream + static_cast<std::uint64_t>(l),
                static_cast<std::uint64_t>(own.begin * shape.width));
    const float length = 1.0f / std::sqrt(static_cast<float>(shape.width));
    scale_in_place(encoder, length);
    layer.encoder.mutable_value() = encoder.to(device);
    const EncoderWeights weights{layer.encoder, layer.encoder_bias, {}};
    const Tensor h =
        pre_activations(layer_rows(sample.inputs, l), weights, transcoder.placement().precision)
            .on_host();
    layer.encoder_bias.mutable_value() =
        biases_for_rate(h, jumps ? start.threshold : 0.0f, start.rate).to(device);
    if (jumps)
      layer.log_threshold.mutable_value() =
          Tensor::full({own.count()}, std::log(start.threshold), device);
  }
  const Tensor targets = sample.targets.on_host();
  Tensor mean = Tensor::zeros({shape.layers, 1, shape.width});
  const std::int64_t tokens = targets.size(1);
  const float* from = targets.f32();
  float* to = mean.mutable_f32();
  for (std::int64_t l = 0; l < shape.layers; ++l)
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t i = 0; i < shape.width; ++i)
        to[l * shape.width + i] +=
            from[(l * tokens + t) * shape.width + i] / static_cast<float>(tokens);
  transcoder.decoder_bias().mutable_value() = mean.to(device);
}

void begin_from(Transcoder& transcoder, Transcoder trained, const ActivationScales& scales) {
  const TranscoderShape &to = transcoder.shape(), &from = trained.shape();
  require(
      trained.whole() && to.kind == from.kind && to.layers == from.layers &&
          to.width == from.width && to.features == from.features && to.skip == from.skip,
      "transcoder: {} of {} layers, width {}, {} features cannot go on as {} of {} layers, width "
      "{}, {} features",
      name_of(from.kind), from.layers, from.width, from.features, name_of(to.kind), to.layers,
      to.width, to.features);
  ActivationScales inverse = scales;
  for (std::vector<float>* factors : {&inverse.input, &inverse.output})
    for (float& factor : *factors) factor = 1.0f / factor;
  fold_scales(trained, inverse);
  const FeatureRange& own = transcoder.features();
  const DeviceKind device = transcoder.placement().device;
  for (std::size_t l = 0; l < trained.layers().size(); ++l) {
    const TranscoderLayer &source = trained.layers()[l], &into = transcoder.layers()[l];
    const auto take = [&](const Variable& value, const Variable& parameter) {
      parameter.mutable_value() = value.value().rows(own.begin, own.end).clone().to(device);
    };
    take(source.encoder, into.encoder);
    take(source.encoder_bias, into.encoder_bias);
    take(source.decoder, into.decoder);
    if (into.log_threshold.defined()) {
      if (source.log_threshold.defined())
        take(source.log_threshold, into.log_threshold);
      else
        into.log_threshold.mutable_value() =
            Tensor::full({own.count()}, std::log(TranscoderStart().threshold), device);
    }
    if (into.skip.defined()) into.skip.mutable_value() = source.skip.value().clone().to(device);
  }
  transcoder.decoder_bias().mutable_value() = trained.decoder_bias().value().clone().to(device);
}

TranscoderTrainable::TranscoderTrainable(Transcoder& transcoder, Settings start)
    : transcoder_(transcoder),
      start_(std::move(start)),
      densities_(Tensor::zeros({transcoder.shape().layers, transcoder.features().count()},
                               DType::kF32, transcoder.placement().device)) {}

std::vector<std::vector<float>> TranscoderTrainable::density() const {
  const Tensor host = densities_.on_host();
  std::vector<std::vector<float>> layers;
  for (std::int64_t l = 0; l < host.size(0); ++l) {
    const Tensor row = host.rows(l, l + 1);
    layers.emplace_back(row.values().begin(), row.values().end());
  }
  return layers;
}

std::vector<NamedParameter> TranscoderTrainable::parameters() const {
  return transcoder_.shared_parameters();
}

std::vector<NamedParameter> TranscoderTrainable::own_parameters() const {
  return transcoder_.feature_parameters();
}

Settings TranscoderTrainable::settings() const {
  const TranscoderShape& shape = transcoder_.shape();
  Settings settings({{"kind", std::string(name_of(shape.kind))},
                     {"layers", shape.layers},
                     {"width", shape.width},
                     {"features", shape.features},
                     {"skip", shape.skip},
                     {"activation", std::string(name_of(transcoder_.activation()))}});
  settings.add(start_);
  return settings;
}

void TranscoderTrainable::save(const std::filesystem::path& folder, Communicator& ranks) const {
  const std::vector<std::vector<float>> densities = density();
  NamedNumbers numbers;
  for (std::size_t l = 0; l < densities.size(); ++l)
    numbers.emplace_back(density_name(l), std::span<const float>(densities[l]));
  write_parameters(folder / own_file(ranks), own_parameters(), numbers);
  if (ranks.first()) write_parameters(folder / "shared.safetensors", parameters(), {});
}

void TranscoderTrainable::restore(const std::filesystem::path& folder, Communicator& ranks) {
  const std::filesystem::path own = folder / own_file(ranks);
  require(is_there(own),
          "resume: '{}' is not there; resume with as many processes as the run was begun with",
          printable(own.string()));
  const StoredPart features(own);
  read_parameters(features, own_parameters());
  const std::int64_t count = densities_.size(1);
  for (std::int64_t l = 0; l < densities_.size(0); ++l)
    densities_.rows(l, l + 1).copy_from(
        read_tensor(features, density_name(static_cast<std::size_t>(l)), {count})
            .reshape({1, count}));
  const StoredPart shared(folder / "shared.safetensors");
  read_parameters(shared, parameters());
}

Transcoder gathered(const Transcoder& part, Communicator& ranks) {
  const std::int64_t features = part.shape().features;
  Transcoder whole(part.shape(), part.activation(), {0, features});
  const auto gather = [&](const std::vector<NamedParameter>& from,
                          const std::vector<NamedParameter>& to, bool split) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Tensor value = from[i].variable.value().to(DeviceKind::kCpu);
      if (!split || part.whole()) {
        to[i].variable.mutable_value() = value.clone();
        continue;
      }
      Tensor all = Tensor::zeros(to[i].variable.shape());
      all.rows(part.features().begin, part.features().end).copy_from(value);
      ranks
          .start_sum({{all.mutable_f32(), static_cast<std::size_t>(all.elements())}},
                     DeviceKind::kCpu)
          ->wait();
      to[i].variable.mutable_value() = all;
    }
  };
  gather(part.feature_parameters(), whole.feature_parameters(), true);
  gather(part.shared_parameters(), whole.shared_parameters(), false);
  return whole;
}

void fold_scales(Transcoder& transcoder, const ActivationScales& scales) {
  const TranscoderShape& shape = transcoder.shape();
  const std::int64_t d = shape.width;
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    const auto i = static_cast<std::size_t>(l);
    TranscoderLayer& layer = transcoder.layers()[i];
    scale_in_place(layer.encoder.mutable_value(), scales.input[i]);
    const std::int64_t reach = shape.reach(l);
    float* decoder = layer.decoder.mutable_value().mutable_f32();
    for (std::int64_t f = 0; f < transcoder.features().count(); ++f)
      for (std::int64_t j = 0; j < reach; ++j, decoder += d)
        for (std::int64_t e = 0; e < d; ++e)
          decoder[e] /= scales.output[static_cast<std::size_t>(l + j)];
    float* bias = transcoder.decoder_bias().mutable_value().mutable_f32() + l * d;
    for (std::int64_t e = 0; e < d; ++e) bias[e] /= scales.output[i];
    if (layer.skip.defined())
      scale_in_place(layer.skip.mutable_value(), scales.input[i] / scales.output[i]);
  }
}

}  // namespace filigree
