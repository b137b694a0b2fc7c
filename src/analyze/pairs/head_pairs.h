// How alike the maps of heads are: the correlation of every pair of heads over all causal cells of
// all prompts, one point a cell (i, j) with x the weight in one head and y in the other.
//
// Memory is bounded whatever the number of prompts and their length:
//
//   Pearson   from sums of products. Of a prompt whose cells for all heads do not fit
//   `budget_bytes`
//             a stratified sample of cells stands for all (stratified_cells), with a standard error
//             of at most 1 / sqrt(cells used). 144 heads at up to 480 tokens fit whole.
//   Spearman  from the ranks within an even sample of `sample_cells` cells of all prompts, the same
//             cells for every head (CellReservoir): exact while there are no more cells than that,
//             else with a standard error of about 1 / sqrt(sample_cells), 0.0055 by default.
//
// The same sample gives the points of scatter plots. Equal values share their rank, so that the
// many exact zeros of sparse maps are one tie. Heads that do not vary (all zero, say) correlate
// with nothing: 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/maps/capture.h"
#include "analyze/maps/cell_sampling.h"
#include "analyze/pairs/clustering.h"
#include "analyze/pairs/correlation.h"

namespace filigree {

struct HeadPairOptions {
  std::size_t budget_bytes = std::size_t{64} << 20;  // for the cells of one prompt
  std::size_t sample_cells = 32768;
  std::uint64_t seed = 0;
};

struct ScatterPoint {
  std::size_t prompt = 0;
  Cell cell = {};
};

struct HeadPairs {
  std::vector<HeadId> heads;
  std::int64_t cells = 0;       // causal cells of all prompts
  std::int64_t cells_used = 0;  // for Pearson
  CorrelationMatrix pearson, spearman;
  std::vector<std::size_t> constant;  // slots of heads that did not vary in the sample
  Clustering clustering;              // by Pearson

  // The sample: where its points lie, and the weights of each head there.
  std::vector<ScatterPoint> points;
  std::vector<float> weights;  // [heads, points]

  std::span<const float> weights_of(std::size_t slot) const {
    return std::span(weights).subspan(slot * points.size(), points.size());
  }
  // An even choice of at most `most` points, as indices in order.
  std::vector<std::size_t> choose_points(std::size_t most, std::uint64_t seed) const;
};

class HeadPairAccumulator {
 public:
  explicit HeadPairAccumulator(std::vector<HeadId> heads, const HeadPairOptions& options = {});

  // A HeadMapConsumer. The prompts must come one by one (CaptureOptions::batch_tokens 0).
  void add(std::span<const HeadMap> maps);

  HeadPairs finish();

 private:
  void begin(const HeadMap& map);
  void flush();
  void gather(const HeadMap& map);

  std::vector<HeadId> heads_;
  HeadPairOptions options_;
  CorrelationSums sums_;
  std::vector<float> shift_;  // a rough mean of each head, so that sums do not cancel
  bool shifted_ = false;
  std::int64_t cells_ = 0, cells_used_ = 0;

  // The prompt at hand.
  std::vector<Cell> chosen_;
  std::vector<Tensor> pieces_;  // [heads, kPiece] each
  std::vector<CellReservoir::Kept> kept_;
  std::size_t prompt_ = 0, heads_seen_ = 0;
  std::int64_t length_ = 0;

  CellReservoir reservoir_;
  std::vector<ScatterPoint> points_;
  std::vector<float> sample_;  // [points, heads]: grows as points come
};

}  // namespace filigree
