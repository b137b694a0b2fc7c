#include "filigree/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

// Counts the open gates of every layer and head as runs pass them: reports of the attention
// exclude changes inside it.
void count_gates(Taps& taps, const ModelConfig& config, std::vector<double>& open) {
  for (std::int64_t l = 0; l < config.layers; ++l)
    taps.watch(fmt::format("blocks.{}.attn.hook_gate", l), [l, &open](std::string_view,
                                                                      const Tensor& gate) {
      const std::int64_t B = gate.size(0), H = gate.size(1), T = gate.size(2);
      for (std::int64_t map = 0; map < B * H; ++map)
        for (std::int64_t i = 0; i < T; ++i) {
          const float* row = gate.f32() + (map * T + i) * T;
          open[static_cast<std::size_t>(l * H + map % H)] += std::accumulate(row, row + i + 1, 0.0);
        }
    });
}

// Adds what one forward pass over a batch tells.
void add_batch(const Model& model, const Batch& batch, Taps* taps, Evaluation& result) {
  std::vector<GateReport> reports;
  Tensor losses;  // [B, T], 0 where ignored
  cross_entropy(model.forward(batch.ids, {.taps = taps,
                                          .reports = taps == nullptr ? &reports : nullptr,
                                          .logits_on_device = true}),
                batch.targets, &losses);
  losses = losses.on_host();
  const std::int64_t B = batch.ids.size(0), T = batch.ids.size(1);
  for (std::int64_t b = 0; b < B; ++b) {
    WindowLoss window;
    for (std::int64_t i = b * T; i < (b + 1) * T; ++i) {
      window.sum += static_cast<double>(losses.f32()[i]);
      window.tokens += batch.targets.i32()[i] != kIgnoredTarget ? 1 : 0;
    }
    result.total.sum += window.sum;
    result.total.tokens += window.tokens;
    result.windows.push_back(window);
  }
  std::vector<Tensor> expected;
  for (GateReport& report : reports) {
    report.active = report.active.on_host();
    expected.push_back(report.expected.value().on_host());
  }
  result.queries += B * T;
  for (std::int64_t l = 0; l < result.layers; ++l) {
    const double pairs = model.config().edges_seen(l, T);
    result.edges[static_cast<std::size_t>(l)] += pairs * static_cast<double>(B);
    for (std::int64_t h = 0; h < result.heads; ++h) {
      double& open = result.open_edges[static_cast<std::size_t>(l * result.heads + h)];
      if (taps != nullptr && model.config().gate.on()) continue;  // counted as they passed
      if (reports.empty()) {
        open += pairs * static_cast<double>(B);
        continue;
      }
      const Tensor& active = reports[static_cast<std::size_t>(l)].active;  // [B, H]
      double& sampled = result.expected_edges[static_cast<std::size_t>(l * result.heads + h)];
      for (std::int64_t b = 0; b < B; ++b)
        sampled += pairs * static_cast<double>(
                               expected[static_cast<std::size_t>(l)].f32()[b * result.heads + h]);
      // Rounded, because the share in single precision stands for a whole number of edges.
      for (std::int64_t b = 0; b < B; ++b)
        open += std::round(static_cast<double>(active.f32()[b * result.heads + h]) * pairs);
    }
  }
}

// Puts the parts of all ranks together: each window and each batch was measured by one of them and
// is zero elsewhere, so that the sums are exact.
void merge(Evaluation& result, Communicator& ranks) {
  std::vector<double> all = result.open_edges;
  all.insert(all.end(), result.expected_edges.begin(), result.expected_edges.end());
  all.insert(all.end(), result.edges.begin(), result.edges.end());
  all.push_back(static_cast<double>(result.queries));
  for (const WindowLoss& window : result.windows) {
    all.push_back(window.sum);
    all.push_back(static_cast<double>(window.tokens));
  }
  ranks.sum(all);
  auto next = all.cbegin();
  for (double& open : result.open_edges) open = *next++;
  for (double& expected : result.expected_edges) expected = *next++;
  for (double& edges : result.edges) edges = *next++;
  result.queries = static_cast<std::int64_t>(*next++);
  result.total = {};
  for (WindowLoss& window : result.windows) {
    window.sum = *next++;
    window.tokens = static_cast<std::int64_t>(*next++);
    result.total.sum += window.sum;
    result.total.tokens += window.tokens;
  }
}

// Standard error of (sum of values) / tokens, each value given less what its tokens let expect.
std::optional<double> error_of(const std::vector<double>& residuals, std::int64_t tokens) {
  const auto count = static_cast<double>(residuals.size());
  if (residuals.size() < 2) return std::nullopt;
  double squares = 0.0;
  for (const double residual : residuals) squares += residual * residual;
  return std::sqrt(squares * count / (count - 1.0)) / static_cast<double>(tokens);
}

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss()); }

std::optional<double> Evaluation::loss_error() const {
  std::vector<double> residuals;
  for (const WindowLoss& window : windows)
    residuals.push_back(window.sum - loss() * static_cast<double>(window.tokens));
  return error_of(residuals, total.tokens);
}

Connectivity Evaluation::of_heads(std::int64_t first, std::int64_t count) const {
  const auto begin = open_edges.begin() + first;
  const double open = std::accumulate(begin, begin + count, 0.0);
  double all = 0.0;
  for (std::int64_t h = first; h < first + count; ++h)
    all += edges[static_cast<std::size_t>(h / heads)];
  return {open / all, open / static_cast<double>(count) / static_cast<double>(queries)};
}

Connectivity Evaluation::connectivity() const { return of_heads(0, layers * heads); }

Connectivity Evaluation::connectivity(std::int64_t layer) const {
  return of_heads(layer * heads, heads);
}

Connectivity Evaluation::connectivity(std::int64_t layer, std::int64_t head) const {
  return of_heads(layer * heads + head, 1);
}

LivingHeads Evaluation::living() const {
  std::vector<HeadId> all;
  for (std::int64_t h = 0; h < layers * heads; ++h) all.push_back({h / heads, h % heads});
  return living_heads(all, open_edges, queries);
}

std::optional<double> change_error(const Evaluation& a, const Evaluation& b) {
  if (a.windows.size() != b.windows.size()) return std::nullopt;
  const double change = a.loss() - b.loss();
  std::vector<double> residuals;
  for (std::size_t i = 0; i < a.windows.size(); ++i) {
    if (a.windows[i].tokens != b.windows[i].tokens) return std::nullopt;
    residuals.push_back(a.windows[i].sum - b.windows[i].sum -
                        change * static_cast<double>(a.windows[i].tokens));
  }
  return error_of(residuals, a.total.tokens);
}

Evaluation evaluate(const Model& model, const EvaluationWindows& windows,
                    const std::function<void(const Evaluation&)>& progress, Communicator* ranks,
                    const Taps* taps) {
  const ModelConfig& config = model.config();
  Evaluation result;
  result.layers = config.layers;
  result.heads = config.heads;
  result.open_edges.assign(static_cast<std::size_t>(config.layers * config.heads), 0.0);
  result.expected_edges = result.open_edges;
  result.edges.assign(static_cast<std::size_t>(config.layers), 0.0);
  const int size = ranks != nullptr ? ranks->size() : 1,
            rank = ranks != nullptr ? ranks->rank() : 0;
  std::optional<Taps> watched;  // the caller's stay without what is counted here
  if (taps != nullptr) watched = *taps;
  if (watched && config.gate.on()) count_gates(*watched, config, result.open_edges);
  const NoGrad no_grad;
  int turn = 0;
  while (const std::optional<Batch> batch = windows.next()) {
    const bool own = turn == rank;
    turn = (turn + 1) % size;
    if (!own) {
      result.windows.resize(result.windows.size() + static_cast<std::size_t>(batch->ids.size(0)));
      continue;
    }
    add_batch(model, *batch, watched ? &*watched : nullptr, result);
    if (progress) progress(result);
  }
  if (size > 1) merge(result, *ranks);
  require(result.total.tokens > 0, "evaluation: there is no text to evaluate on");
  return result;
}

}  // namespace filigree
