#include "apps/cli/evaluation.h"

#include <algorithm>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/cross_entropy/cross_entropy.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kTokensAPass = 1024;  // enough work for every thread, little memory

// The sum of the losses that count in windows [first, last), in one forward pass. Shorter windows
// are filled up at their end, which causal attention does not let the counted positions see.
double batch_loss(const Model& model, std::span<const TokenId> ids,
                  std::span<const Window> windows) {
  const auto B = static_cast<std::int64_t>(windows.size());
  std::int64_t T = 0;
  for (const Window& window : windows) T = std::max(T, window.end - window.begin);
  Tensor inputs = Tensor::zeros({B, T}, DType::kI32);
  Tensor targets = Tensor::empty({B, T}, DType::kI32);
  std::fill_n(targets.mutable_i32(), B * T, kIgnoredTarget);
  for (std::int64_t b = 0; b < B; ++b) {
    const Window& window = windows[static_cast<std::size_t>(b)];
    for (std::int64_t i = window.begin; i < window.end; ++i) {
      const std::int64_t at = b * T + i - window.begin;
      inputs.mutable_i32()[at] = ids[static_cast<std::size_t>(i)];
      if (i + 1 >= window.first_counted)
        targets.mutable_i32()[at] = ids[static_cast<std::size_t>(i + 1)];
    }
  }
  Tensor losses;  // [B, T], 0 where ignored
  cross_entropy(model.forward(inputs), targets, &losses);
  double sum = 0.0;
  for (const float loss : losses.values()) sum += static_cast<double>(loss);
  return sum;
}

}  // namespace

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

LossTotal evaluate(const Model& model, std::span<const TokenId> ids,
                   const EvaluationOptions& options,
                   const std::function<void(const LossTotal&)>& progress) {
  const std::int64_t context = model.config().context;
  const std::int64_t length = options.length > 0 ? options.length : context;
  require(length <= context, "windows of {} tokens are longer than the model's context of {}",
          length, context);
  const std::vector<Window> windows = windows_of(static_cast<std::int64_t>(ids.size()), length,
                                                 options.stride > 0 ? options.stride : length);
  const auto batch = static_cast<std::size_t>(
      options.batch > 0 ? options.batch : std::max<std::int64_t>(1, kTokensAPass / length));

  NoGrad no_grad;
  LossTotal total;
  for (std::size_t first = 0; first < windows.size(); first += batch) {
    const auto part = std::span(windows).subspan(first, std::min(batch, windows.size() - first));
    total.sum += batch_loss(model, ids, part);
    for (const Window& window : part) total.tokens += window.end - window.first_counted + 1;
    if (progress) progress(total);
  }
  return total;
}

}  // namespace filigree::cli
