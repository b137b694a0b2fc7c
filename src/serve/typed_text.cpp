#include "serve/typed_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace filigree::serve {
namespace {

// Texts whose maps a page may still have: answers cross, and some are given up.
constexpr std::size_t kNamedTexts = 8;

std::size_t triangle(std::size_t tokens) { return tokens * (tokens + 1) / 2; }

std::size_t capacity_of(const ModelConfig& config, std::size_t bytes) {
  const auto a_token = static_cast<std::size_t>(2 * config.layers * config.key_heads *
                                                config.head_width * std::int64_t{sizeof(float)});
  return std::min(static_cast<std::size_t>(config.context),
                  bytes / std::max<std::size_t>(a_token, 1));
}

}  // namespace

std::uint16_t stored_weight(float weight) {
  const float share = std::min(std::max(0.0f, weight), 1.0f);
  const auto level = static_cast<std::int32_t>(share * 65535.0f + 0.5f);
  return static_cast<std::uint16_t>(level + (share > 0.0f && level == 0 ? 1 : 0));
}

TypedText::TypedText(const study::LoadedModel& model, std::size_t bytes)
    : model_(model),
      capacity_(capacity_of(model.config(), bytes)),
      cells_(static_cast<std::size_t>(model.config().layers * model.config().heads)) {
  std::random_device random;
  begun_ = static_cast<std::uint64_t>(random()) << 32 | random();
}

// [1, H, queries, keys] of the tokens that are new.
void TypedText::see(std::int64_t layer, const Tensor& pattern) {
  const std::int64_t H = pattern.size(1), queries = pattern.size(2), keys = pattern.size(3);
  for (std::int64_t h = 0; h < H; ++h) {
    std::vector<std::uint16_t>& cells = cells_[static_cast<std::size_t>(layer * H + h)];
    for (std::int64_t q = 0; q < queries; ++q) {
      const float* row = pattern.f32() + (h * queries + q) * keys;
      const std::size_t begin = cells.size(), count = kept_ + static_cast<std::size_t>(q) + 1;
      cells.resize(begin + count);
      for (std::size_t key = 0; key < count; ++key) cells[begin + key] = stored_weight(row[key]);
    }
  }
}

void TypedText::forget_from(std::size_t token) {
  ids_.resize(token);
  surprise_.resize(std::min(surprise_.size(), token));  // of the token that comes once more, too
  for (std::vector<std::uint16_t>& cells : cells_) cells.resize(triangle(token));
  if (cache_) cache_->truncate(static_cast<std::int64_t>(token));
}

void TypedText::name_anew() {
  for (NamedText& before : names_) before.same = std::min(before.same, kept_);
  if (names_.size() == kNamedTexts) names_.pop_front();
  names_.push_back({fmt::format("{:016x}-{}", begun_, ++texts_), ids_.size()});
}

std::size_t TypedText::same_since(const std::string& text) const {
  for (const NamedText& before : names_)
    if (before.text == text) return before.same;
  return 0;
}

study::Prediction TypedText::run(const std::vector<TokenId>& ids) {
  if (ids == ids_) {
    computed_ = 0;
    return last_;
  }
  const auto same = static_cast<std::size_t>(
      std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end()).first - ids_.begin());
  // The last of the tokens that are there once more: its logits say how the next one surprises.
  kept_ = std::min(same, ids.size()) > 0 ? std::min(same, ids.size()) - 1 : 0;
  // Longer texts may turn all positions otherwise.
  if (cache_ &&
      !model_.config().same_angles(cache_->longest_run(), static_cast<std::int64_t>(ids.size()))) {
    kept_ = 0;
    cache_->clear();
  }
  forget_from(kept_);
  if (!cache_) cache_ = model_.model().make_cache(1, static_cast<std::int64_t>(capacity_));
  Taps taps;
  for (std::int64_t layer = 0; layer < model_.config().layers; ++layer)
    taps.watch(fmt::format("blocks.{}.attn.hook_pattern", layer),
               [this, layer](std::string_view, const Tensor& pattern) { see(layer, pattern); });
  const std::vector<TokenId> fresh(ids.begin() + static_cast<std::ptrdiff_t>(kept_), ids.end());
  study::Prediction found;
  try {
    const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(fresh.size())}, fresh);
    const Tensor logits =
        model_.model().forward(input, {.taps = &taps, .cache = cache_.get()}).value();
    found = study::prediction_of(logits, model_, fresh);
  } catch (...) {  // what is half there is not there
    forget_from(0);
    names_.clear();
    throw;
  }
  ids_ = ids;
  computed_ = fresh.size();
  name_anew();
  surprise_.insert(surprise_.end(), found.surprise.begin(), found.surprise.end());
  found.surprise = surprise_;
  last_ = found;
  return found;
}

std::vector<std::uint16_t> TypedText::cells(std::size_t first) const {
  std::vector<std::uint16_t> cells;
  cells.reserve(cells_.size() * (triangle(ids_.size()) - triangle(first)));
  for (const std::vector<std::uint16_t>& head : cells_)
    cells.insert(cells.end(), head.begin() + static_cast<std::ptrdiff_t>(triangle(first)),
                 head.end());
  return cells;
}

}  // namespace filigree::serve
