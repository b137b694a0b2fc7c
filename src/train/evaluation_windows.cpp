#include <algorithm>
#include <memory>

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/evaluation.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

constexpr std::int64_t kTokensAPass = 1024;  // enough work for every thread, little memory

std::int64_t batch_of(const WindowOptions& options, std::int64_t length) {
  return options.batch > 0 ? options.batch : std::max<std::int64_t>(1, kTokensAPass / length);
}

Batch text_batch(std::span<const TokenId> ids, std::span<const Window> windows) {
  const auto B = static_cast<std::int64_t>(windows.size());
  const std::int64_t T = windows[0].end - windows[0].begin;
  Batch batch{Tensor::empty({B, T}, DType::kI32), Tensor::empty({B, T}, DType::kI32)};
  for (std::int64_t b = 0; b < B; ++b) {
    const Window& window = windows[static_cast<std::size_t>(b)];
    for (std::int64_t i = window.begin; i < window.end; ++i) {
      const std::int64_t at = b * T + i - window.begin;
      batch.ids.mutable_i32()[at] = ids[static_cast<std::size_t>(i)];
      batch.targets.mutable_i32()[at] =
          i + 1 >= window.first_counted ? ids[static_cast<std::size_t>(i + 1)] : kIgnoredTarget;
    }
  }
  return batch;
}

// The first `rows` rows.
Tensor first_rows(const Tensor& all, std::int64_t rows) {
  if (rows >= all.size(0)) return all;
  return Tensor::from_ids({rows, all.size(1)},
                          {all.i32(), static_cast<std::size_t>(rows * all.size(1))});
}

}  // namespace

std::int64_t window_length(const WindowOptions& options, const ModelConfig& config) {
  const std::int64_t length = options.length > 0 ? options.length : config.context;
  require(length <= config.context,
          "windows of {} tokens are longer than the model's context of {}", length, config.context);
  return length;
}

std::vector<Window> windows_of(std::int64_t tokens, std::int64_t length, std::int64_t stride) {
  require(tokens >= 2, "a loss needs at least two tokens, there {} {}", tokens == 1 ? "is" : "are",
          tokens);
  require(length >= 1, "windows of {} tokens; they must have at least one", length);
  require(stride >= 1 && stride <= length, "a stride of {} does not fit windows of {} tokens",
          stride, length);
  std::vector<Window> windows;
  std::int64_t counted_to = 0;  // the last target that has been counted
  for (std::int64_t begin = 0; counted_to < tokens - 1; begin += stride) {
    const std::int64_t end = std::min(begin + length, tokens - 1);
    windows.push_back({begin, end, counted_to + 1});
    counted_to = end;
  }
  return windows;
}

EvaluationWindows text_windows(std::span<const TokenId> ids, const WindowOptions& options,
                               const ModelConfig& config) {
  const std::int64_t length = window_length(options, config);
  std::vector<Window> windows = windows_of(static_cast<std::int64_t>(ids.size()), length,
                                           options.stride > 0 ? options.stride : length);
  if (options.max_tokens > 0)
    while (windows.size() > 1 && windows[windows.size() - 2].end >= options.max_tokens)
      windows.pop_back();
  const std::int64_t targets = windows.back().end;
  const auto batch = static_cast<std::size_t>(batch_of(options, length));
  return {[ids, batch, windows = std::move(windows),
           first = std::size_t{0}]() mutable -> std::optional<Batch> {
            if (first == windows.size()) return std::nullopt;
            const auto size = [&](std::size_t i) { return windows[i].end - windows[i].begin; };
            std::size_t last = first + 1;
            while (last < windows.size() && last < first + batch && size(last) == size(first))
              ++last;
            const auto part = std::span(windows).subspan(first, last - first);
            first = last;
            return text_batch(ids, part);
          },
          targets};
}

EvaluationWindows shard_windows(const TokenSplit& split, const WindowOptions& options,
                                const ModelConfig& config) {
  const std::int64_t length = window_length(options, config);
  auto loader =
      std::make_shared<SequentialLoader>(split, batch_of(options, length), length, options.first);
  auto targets = static_cast<std::int64_t>(loader->targets());
  if (options.max_tokens > 0)
    targets = std::min(targets, (options.max_tokens + length - 1) / length * length);
  return {[loader, left = targets]() mutable -> std::optional<Batch> {
            TokenBatch batch;
            if (left <= 0 || !loader->next(batch)) return std::nullopt;
            const std::int64_t T = batch.ids.size(1);
            const std::int64_t rows = std::min(batch.ids.size(0), (left + T - 1) / T);
            left -= rows * T;
            return Batch{first_rows(batch.ids, rows), first_rows(batch.targets, rows)};
          },
          targets};
}

Knobs knobs_of(WindowOptions& options) {
  Knobs knobs;
  knobs.section("Windows");
  knobs.count({.name = "stride",
               .what = "tokens from one window to the next; fewer than --context give every token "
                       "more context, and only new tokens count",
               .otherwise = "the window's length"},
              options.stride, {.min = 1, .max = 1 << 30});
  return knobs;
}

}  // namespace filigree
