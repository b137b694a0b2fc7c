// filigree demo: what the program does, shown and checked on a GPT-2 with random weights. Every
// line of its output is a result that was verified; a wrong one ends the demo with an error.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/model_shape.h"
#include "apps/cli/program.h"
#include "apps/cli/stopwatch.h"
#include "apps/cli/table.h"
#include "autograd/tape.h"
#include "base/error.h"
#include "base/random.h"
#include "base/strings.h"
#include "model/model.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kLength = 64;

struct DemoOptions {
  ModelShape shape;
  std::string out = "demo";
};

// Runs the steps and shows what each of them found and how long it took.
class Steps {
 public:
  explicit Steps(const Session& session) : session_(session) {}

  void run(const std::string& what, const std::function<std::string()>& body) {
    throw_if_interrupted();
    const Stopwatch watch;
    const std::string result = body();
    const double seconds = watch.seconds();
    json_.push_back({{"step", what}, {"result", result}, {"seconds", seconds}});
    if (!session_.json())
      session_.print(fmt::format("{:<28}  {:<39}  {:>7}\n", what, result, format_seconds(seconds)));
  }

  const Json& json() const { return json_; }

 private:
  const Session& session_;
  Json json_ = Json::array();
};

// A text of random tokens; its own continuation is what the model is asked to predict.
struct Sample {
  Tensor ids, targets;  // [1, T]
};

Sample random_sample(std::int64_t vocabulary, std::uint64_t seed) {
  Random random(seed, 1);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i <= kLength; ++i)
    ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
  return {Tensor::from_ids({1, kLength}, std::span(ids).first(kLength)),
          Tensor::from_ids({1, kLength}, std::span(ids).last(kLength))};
}

std::string compare_weights(const Model& made, const Model& loaded) {
  require(made.parameters().size() == loaded.parameters().size(),
          "demo: {} tensors were saved and {} came back", made.parameters().size(),
          loaded.parameters().size());
  for (std::size_t i = 0; i < made.parameters().size(); ++i) {
    const Tensor& a = made.parameters()[i].variable.value();
    const Tensor& b = loaded.parameters()[i].variable.value();
    require(a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0,
            "demo: tensor '{}' came back changed", made.parameters()[i].name);
  }
  return fmt::format("{} tensors, every bit the same", made.parameters().size());
}

// Attention may not look ahead, and what a query pays to its keys must sum to 1.
std::string check_maps(const Taps& taps, std::int64_t layers) {
  double worst = 0.0;
  for (std::int64_t l = 0; l < layers; ++l) {
    const Tensor& maps = taps.value(fmt::format("blocks.{}.attn.hook_pattern", l));
    const std::int64_t T = maps.size(3);
    for (std::int64_t row = 0; row < maps.elements() / T; ++row) {
      const float* weight = maps.f32() + row * T;
      double sum = 0.0;
      for (std::int64_t key = 0; key < T; ++key) {
        require(weight[key] == 0.0f || key <= row % T, "demo: layer {} lets a position look ahead",
                l);
        sum += static_cast<double>(weight[key]);
      }
      worst = std::max(worst, std::abs(sum - 1.0));
    }
  }
  require(worst < 1e-5, "demo: a row of an attention map misses 1 by {}", worst);
  return fmt::format("all causal; rows sum to 1 within {:.0e}", worst);
}

double mean_loss(const Variable& logits, const Tensor& targets) {
  Tensor losses;
  cross_entropy(logits, targets, &losses);
  double sum = 0.0;
  for (const float loss : losses.values()) sum += static_cast<double>(loss);
  return sum / static_cast<double>(losses.elements());
}

// The loss changes by 2 e |g| between x - e g/|g| and x + e g/|g|, if g is its gradient at x.
std::string check_gradient(const Model& model, const Sample& sample, const std::string& tap) {
  Tensor gradient;
  {
    Taps taps;
    taps.observe_gradient(tap);
    Tape tape;
    tape.backward(cross_entropy(model.forward(sample.ids, {.taps = &taps}), sample.targets));
    gradient = taps.gradient(tap);
  }
  double square = 0.0;
  for (const float g : gradient.values()) square += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(square);
  require(norm > 0.0 && std::isfinite(norm), "demo: the gradient's length is {}", norm);

  constexpr double kLossChange = 0.02;  // far above rounding, still close to linear
  const double step = kLossChange / (2.0 * norm);
  const auto loss_at = [&](double distance) {
    Taps taps;
    taps.intervene(tap, [&](const Variable& x) {
      return add(x, scale(gradient, static_cast<float>(distance / norm)));
    });
    return mean_loss(model.forward(sample.ids, {.taps = &taps}), sample.targets);
  };
  const double measured = (loss_at(step) - loss_at(-step)) / (2.0 * step);
  const double difference = std::abs(measured - norm) / norm;
  require(difference < 0.02, "demo: gradient {} and finite difference {} do not agree", norm,
          measured);
  return fmt::format("at {}, to {:.0e}", tap, difference);
}

// Mean divergence of the predictions p from q, in nats.
double divergence(const Variable& log_p, const Variable& log_q) {
  const Variable terms = mul(exp(log_p), sub(log_p, log_q));  // [1, T, V]
  return static_cast<double>(sum_all(terms).value().item()) / static_cast<double>(kLength);
}

// Switches the heads of the first layer off, one at a time.
std::string ablate_heads(const Model& model, const Sample& sample, const Variable& clean) {
  const std::int64_t heads = model.config().heads;
  const Variable log_p = log_softmax(clean);
  std::int64_t strongest = 0;
  double largest = -1.0;
  for (std::int64_t h = 0; h < heads; ++h) {
    throw_if_interrupted();
    Tensor mask = Tensor::full({heads, 1}, 1.0f);
    mask.mutable_f32()[h] = 0.0f;
    Taps taps;
    taps.intervene("blocks.0.attn.hook_z",
                   [&](const Variable& z) { return mul(z, mask); });  // [1, T, H, D]
    const double effect =
        divergence(log_p, log_softmax(model.forward(sample.ids, {.taps = &taps})));
    if (effect > largest) largest = effect, strongest = h;
  }
  require(largest > 0.0, "demo: switching heads off changed nothing");
  return fmt::format("L0H{} most: divergence {:.1e} nats", strongest, largest);
}

void run_demo(const DemoOptions& options, Session& session) {
  const std::filesystem::path folder = std::filesystem::path(options.out) / "gpt2-random";
  const std::uint64_t seed = session.options().seed;
  const ModelConfig config = options.shape.config();
  const Sample sample = random_sample(config.vocabulary, seed);
  const std::int64_t maps = config.layers * config.heads;
  const std::string tap = fmt::format("blocks.{}.hook_resid_pre", config.layers / 2);
  if (!session.json())
    session.print(fmt::format("{}, random weights of seed {}\n\n", options.shape.text(), seed));

  Steps steps(session);
  std::unique_ptr<Model> made, model;
  Taps taps;
  Variable clean;
  steps.run("make a model", [&] {
    made = make_model(config, seed);
    return with_thousands(static_cast<std::uint64_t>(made->parameter_count())) + " parameters";
  });
  steps.run("save it for transformers", [&] {
    save_model(*made, folder);
    return fmt::format("{}, {}", folder.string(),
                       human_bytes(std::filesystem::file_size(folder / "model.safetensors")));
  });
  steps.run("load it", [&] {
    model = load_model(folder);
    return fmt::format("{} taps", model->tap_names().size());
  });
  steps.run("compare with what was saved", [&] { return compare_weights(*made, *model); });
  made.reset();
  steps.run(fmt::format("run it on {} tokens", kLength), [&] {
    taps.observe("blocks.*.attn.hook_pattern");
    clean = model->forward(sample.ids, {.taps = &taps});
    return fmt::format("{} attention maps, loss {:.3f}", maps, mean_loss(clean, sample.targets));
  });
  steps.run("check the maps", [&] { return check_maps(taps, config.layers); });
  steps.run("gradient = finite difference", [&] { return check_gradient(*model, sample, tap); });
  steps.run(fmt::format("switch off {} heads in turn", config.heads),
            [&] { return ablate_heads(*model, sample, clean); });

  if (session.json())
    session.print_json({{"folder", folder.string()}, {"steps", steps.json()}});
  else
    session.print(
        fmt::format("\nThe model is in {}: filigree info {}\n", folder.string(), folder.string()));
}

}  // namespace

void add_demo(Program& program) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App& app = program.add(
      {"demo",
       "Show and check what the program does, in under a minute.",
       {"filigree demo", "filigree demo --out /tmp/demo --layers 4 --width 256 --heads 4"}},
      [options](Session& session) { run_demo(*options, session); });
  app.add_option("--out", options->out, "folder to write to")
      ->type_name("DIR")
      ->capture_default_str();
  add_shape_options(app, options->shape);
}

}  // namespace filigree::cli
