#include <algorithm>
#include <numeric>

#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::int64_t kPiece = 4096;  // cells of one matrix product
constexpr std::uint64_t kCellStream = std::uint64_t{0xCE115} << 40;
constexpr std::uint64_t kPointStream = std::uint64_t{0x9017} << 40;

}  // namespace

HeadPairAccumulator::HeadPairAccumulator(std::vector<HeadId> heads, const HeadPairOptions& options)
    : heads_(std::move(heads)),
      options_(options),
      sums_(heads_.size()),
      shift_(heads_.size(), 0.0f),
      reservoir_(options.sample_cells, options.seed) {
  require(!heads_.empty(), "head pairs: no heads were chosen");
}

void HeadPairAccumulator::begin(const HeadMap& map) {
  prompt_ = map.prompt;
  length_ = map.length;
  heads_seen_ = 0;
  const auto most =
      static_cast<std::int64_t>(options_.budget_bytes / sizeof(float) / heads_.size());
  chosen_ = stratified_cells(length_, std::max<std::int64_t>(1, most), options_.seed,
                             kCellStream + prompt_);
  const std::size_t pieces = (chosen_.size() + kPiece - 1) / kPiece;
  while (pieces_.size() < pieces)
    pieces_.push_back(Tensor::empty({static_cast<std::int64_t>(heads_.size()), kPiece}));
  kept_ = reservoir_.take(length_);
  points_.resize(reservoir_.filled());
  sample_.resize(points_.size() * heads_.size());
  for (const CellReservoir::Kept& kept : kept_) points_[kept.place] = {prompt_, kept.cell};
}

void HeadPairAccumulator::gather(const HeadMap& map) {
  const auto T = static_cast<std::size_t>(map.length);
  const auto weight = [&](const Cell& cell) {
    return map
        .weights[static_cast<std::size_t>(cell.query) * T + static_cast<std::size_t>(cell.key)];
  };
  if (!shifted_) {
    double sum = 0.0;
    for (const Cell& cell : chosen_) sum += static_cast<double>(weight(cell));
    shift_[map.slot] = static_cast<float>(sum / static_cast<double>(chosen_.size()));
  }
  const float shift = shift_[map.slot];
  for (std::size_t first = 0; first < chosen_.size(); first += kPiece) {
    float* row =
        pieces_[first / kPiece].mutable_f32() + static_cast<std::int64_t>(map.slot) * kPiece;
    const std::size_t count = std::min<std::size_t>(kPiece, chosen_.size() - first);
    for (std::size_t c = 0; c < count; ++c) row[c] = weight(chosen_[first + c]) - shift;
    std::fill(row + count, row + kPiece, 0.0f);
  }
  for (const CellReservoir::Kept& kept : kept_)
    sample_[kept.place * heads_.size() + map.slot] = weight(kept.cell);
}

void HeadPairAccumulator::add(std::span<const HeadMap> maps) {
  if (maps.empty()) return;
  if (heads_seen_ == 0)
    begin(maps[0]);
  else
    require(maps[0].prompt == prompt_,
            "head pairs: prompt {} came before all heads of prompt {}; capture them one by one",
            maps[0].prompt, prompt_);
  parallel_for(static_cast<std::int64_t>(maps.size()), 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t m = first; m < last; ++m)
                   gather(maps[static_cast<std::size_t>(m)]);
               });
  heads_seen_ += maps.size();
  if (heads_seen_ == heads_.size()) flush();
}

void HeadPairAccumulator::flush() {
  const std::int64_t all = causal_cells(length_);
  const double weight = static_cast<double>(all) / static_cast<double>(chosen_.size());
  for (std::size_t first = 0; first < chosen_.size(); first += kPiece)
    sums_.add(pieces_[first / kPiece],
              static_cast<std::int64_t>(std::min<std::size_t>(kPiece, chosen_.size() - first)),
              weight);
  cells_ += all;
  cells_used_ += static_cast<std::int64_t>(chosen_.size());
  shifted_ = true;
  heads_seen_ = 0;
}

HeadPairs HeadPairAccumulator::finish() {
  require(heads_seen_ == 0, "head pairs: of prompt {} only {} of {} heads came", prompt_,
          heads_seen_, heads_.size());
  require(cells_ > 0, "head pairs: there are no prompts");
  pieces_.clear();
  HeadPairs pairs;
  pairs.heads = heads_;
  pairs.cells = cells_;
  pairs.cells_used = cells_used_;
  pairs.pearson = sums_.matrix();
  pairs.points = std::move(points_);
  const std::size_t points = pairs.points.size();
  pairs.weights.resize(heads_.size() * points);
  for (std::size_t p = 0; p < points; ++p)
    for (std::size_t h = 0; h < heads_.size(); ++h)
      pairs.weights[h * points + p] = sample_[p * heads_.size() + h];
  sample_.clear();
  pairs.spearman = rank_correlation(pairs.weights, heads_.size(), points, points);
  for (std::size_t s = 0; s < heads_.size(); ++s) {
    const std::span<const float> weights = pairs.weights_of(s);
    if (std::all_of(weights.begin(), weights.end(), [&](float w) { return w == weights[0]; }))
      pairs.constant.push_back(s);
  }
  pairs.clustering = cluster(pairs.pearson, heads_.size());
  return pairs;
}

std::vector<std::size_t> HeadPairs::choose_points(std::size_t most, std::uint64_t seed) const {
  std::vector<std::size_t> chosen(points.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  if (chosen.size() <= most) return chosen;
  Random random(seed, kPointStream);
  for (std::size_t c = 0; c < most; ++c)
    std::swap(chosen[c], chosen[c + random.below(chosen.size() - c)]);
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace filigree
