// Attention maps of a prompt: taken, averaged, sampled, paired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/interventions.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "filigree/tensor.h"
#include "filigree/tokenizer.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// A prompt as analyses take it: token ids, and how each token is shown.

struct Prompt {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens = {};  // one a token, for labels; or none
};

// -------------------------------------------------------------------------------------------------
// Heads of a model, and the notation by which users choose some of them.
//
//   L5H1            one head              5.1           the same
//   L6H*  6.*  L6   all heads of a layer  L*H3          that head in every layer
//   3.0-3.5         heads 0 to 5 of layer 3
//   L2H1-L2H4       the same form; across layers the range runs on through the heads between:
//                   L2H10-L3H1 is L2H10, L2H11, L3H0, L3H1 in a model of 12 heads
//   L2-L4           layers 2 to 4
//   *  all          every head
//
// Parts are separated by commas; letters may be small. A result has each head once, in the order of
// layers and heads.

// Throws Error for text that is no selection, and for heads that do not exist, saying which do.
std::vector<HeadId> parse_heads(std::string_view text, std::int64_t layers, std::int64_t heads);

// Throws Error for text that is no selection, whatever the model.
void check_heads(std::string_view text);

std::vector<HeadId> all_heads(std::int64_t layers, std::int64_t heads);

// -------------------------------------------------------------------------------------------------
// Attention maps of a model on prompts, layer by layer.
//
// The maps of one layer exist at a time: the model passes them (filigree/taps.h), the caller sees each
// chosen head, and the memory is used again for the next layer. So 144 heads at 1,024 tokens need
// the memory of 12.
//
// i is the query, j the key, and only cells j <= i mean anything:
//
//   weights         A_ij, after the gate for a sparse model: what the head mixes with
//   scores          s_ij = q_i . k_j * scale, before softmax and gate; minus infinity above the
//                   diagonal and outside the window that some layers have
//   gate            e_ij, 0 or 1; 1 at every causal edge of a model without gates
//   value-weighted  A_ij |v_j| / max_j' |v_j'|: how much a key's value can matter, not only how
//                   much it is looked at. |v| is the Euclidean norm of the head's value vector, the
//                   maximum is over the prompt's tokens, so that the map stays in 0..1.

enum class MapKind { kWeights, kScores, kGate, kValueWeighted };

template <>
inline constexpr auto kNames<MapKind> =
    std::to_array<Named<MapKind>>({{MapKind::kWeights, "weights"},
                                   {MapKind::kScores, "scores"},
                                   {MapKind::kGate, "gate"},
                                   {MapKind::kValueWeighted, "value-weighted"}});

// One head on one prompt. The views are T x T, row by row (values: T), and valid during the call
// only. `weights` is always there, the others where CaptureOptions asked for them.
struct HeadMap {
  std::size_t prompt = 0;  // index of the prompt
  std::size_t slot = 0;    // index of the head in CaptureOptions::heads
  HeadId head = {};
  std::int64_t length = 0;  // T
  std::int64_t window = 0;  // keys that a query sees, its own the last; 0: all
  std::span<const float> weights = {};
  std::span<const float> scores = {};
  std::span<const float> gate = {};  // empty for a model without gates: every edge is open
  std::span<const float> value_norms = {};
};

struct CaptureOptions {
  std::vector<HeadId> heads = {};  // sorted, as parse_heads gives them
  bool scores = false;
  bool gate = false;
  bool value_norms = false;
  // Neighbouring prompts of one length run together while they have at most this many tokens. 0:
  // one by one, so that all layers of a prompt come before the next prompt.
  std::int64_t batch_tokens = 0;
  AppliedInterventions* interventions = nullptr;  // what the runs change; null: nothing
  // Sees the logits [B, T, V] of each run; empty: those of one position are computed and dropped.
  std::function<void(const Tensor& logits)> logits = {};

  static CaptureOptions of(std::vector<HeadId> heads, MapKind kind);
};

// Receives the chosen heads of one layer and one prompt, in order of the heads; it may look at them
// in parallel. Layers come in order; so do prompts within a layer.
using HeadMapConsumer = std::function<void(std::span<const HeadMap>)>;

// Throws Error for a prompt that is empty, longer than the model's context or has ids that the
// model does not know, and for heads it does not have.
void capture_maps(const Model& model, std::span<const Prompt> prompts,
                  const CaptureOptions& options, const HeadMapConsumer& consumer);

// The map of one kind, from views that hold what it needs (CaptureOptions::of), into `out` [T, T].
void fill_map(const HeadMap& head, MapKind kind, std::span<float> out);

// What capture_maps checks, for callers that want to fail before long work.
void check_prompts(std::span<const Prompt> prompts, const ModelConfig& config);

// -------------------------------------------------------------------------------------------------
// Maps averaged over prompts of one length, within a bound on memory.
//
// The sums of all heads of a large model do not fit anywhere: 144 maps of 1,024 tokens are 600 MB.
// Where they fit the budget they can be taken along in a pass that is made anyway (MeanMaps). Else
// average_maps takes the heads in groups whose sums fit, and runs the prompts once for each group:
// time for memory, and the same result whatever the budget.

inline constexpr std::size_t kMeanMapBytes = std::size_t{256} << 20;

struct AverageOptions {
  std::vector<HeadId> heads = {};
  MapKind kind = MapKind::kWeights;
  std::size_t budget_bytes = kMeanMapBytes;  // for the sums; at least one head is taken
  AppliedInterventions* interventions = nullptr;
};

// Receives the heads in order: its index in `heads` and its map [T, T], valid during the call.
using MeanMapConsumer = std::function<void(std::size_t slot, std::span<const float> map)>;

// The means of maps that are seen one after the other.
class MeanMaps {
 public:
  // Whether the sums of so many heads fit.
  static bool fit(std::size_t heads, std::int64_t length, std::size_t budget_bytes = kMeanMapBytes);

  // `length` is that of every prompt.
  MeanMaps(std::size_t heads, std::size_t prompts, std::int64_t length, MapKind kind);

  // A HeadMapConsumer; the views must hold what the kind needs (CaptureOptions::of).
  void add(std::span<const HeadMap> maps);

  // After all maps of a slot: its mean [T, T].
  std::span<const float> mean(std::size_t slot) const;

 private:
  std::size_t cells_;
  float share_;
  MapKind kind_;
  Tensor sums_;  // [heads, T * T]
};

// Throws Error unless there are prompts and all have one length, naming two that differ.
void average_maps(const Model& model, std::span<const Prompt> prompts,
                  const AverageOptions& options, const MeanMapConsumer& consumer);

// The common length. Throws Error as average_maps does.
std::int64_t common_length(std::span<const Prompt> prompts);

// -------------------------------------------------------------------------------------------------
// Which cells of attention maps are looked at when not all can be.
//
// The causal cells of a map of T tokens are numbered row by row: (0,0), (1,0), (1,1), (2,0), ...

struct Cell {
  std::int64_t query = 0, key = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};

inline std::int64_t causal_cells(std::int64_t length) { return length * (length + 1) / 2; }
Cell cell_at(std::int64_t number);

// All cells when there are at most `most`; else one at random of each of `most` equal stretches of
// their numbers, in order. A function of the arguments alone.
std::vector<Cell> stratified_cells(std::int64_t length, std::int64_t most, std::uint64_t seed,
                                   std::uint64_t stream);

// An even sample of a fixed number of cells of a stream of maps that ends nobody knows when
// (reservoir sampling, Li's algorithm L): after every map, each cell so far was equally likely to
// be kept.
class CellReservoir {
 public:
  CellReservoir(std::size_t capacity, std::uint64_t seed);

  struct Kept {
    std::size_t place = 0;  // in the reservoir; a later one replaces an earlier one
    Cell cell = {};
  };
  // Those of the next map that are kept, in order.
  std::vector<Kept> take(std::int64_t length);

  std::size_t filled() const {
    return seen_ < capacity_ ? static_cast<std::size_t>(seen_)
                             : static_cast<std::size_t>(capacity_);
  }
  std::int64_t seen() const { return seen_; }

 private:
  void skip();

  std::int64_t capacity_;
  Random random_;
  std::int64_t seen_ = 0;  // cells
  std::int64_t next_ = 0;  // number of the next cell to keep, in the whole stream
  double w_ = 1.0;
};

// -------------------------------------------------------------------------------------------------
// An order of heads in which like stands beside like: hierarchical clustering with average linkage
// of the distances 1 - r.
//
// The two nearest clusters are joined until one is left; the distance of two clusters is the mean
// over their pairs. When two are joined, each may be turned around so that the ends that meet are
// the nearest ones.

struct Clustering {
  // Joined clusters: 0 .. n - 1 are the items, n + m is what merge m made.
  struct Merge {
    std::size_t first = 0, second = 0;
    double distance = 0.0;
  };
  std::vector<Merge> merges;       // n - 1
  std::vector<std::size_t> order;  // items, as they should stand
};

// `correlation` is n x n and symmetric. Equal distances are joined lowest number first.
Clustering cluster(std::span<const double> correlation, std::size_t n);

// -------------------------------------------------------------------------------------------------
// Correlation matrices of many series over cells that come in pieces.

// A symmetric matrix of n x n correlations, row by row. A series that is constant correlates with
// nothing: 0, and 1 with itself.
using CorrelationMatrix = std::vector<double>;

// Pearson's correlation of n series. Each piece is a matrix product in single precision, the pieces
// are summed in double precision; keep the values near 0 (take off a rough mean) so that nothing
// cancels.
class CorrelationSums {
 public:
  explicit CorrelationSums(std::size_t series);

  // [series, cells]: the next cells of all series, of which only the first `count` columns count;
  // the others must be 0. `weight`: how many cells each of them stands for.
  void add(const Tensor& cells, std::int64_t count, double weight = 1.0);

  CorrelationMatrix matrix() const;

 private:
  std::size_t series_;
  double weight_ = 0.0;
  std::vector<double> sums_, products_;
  std::vector<float> least_, most_;  // of each series: equal when it is constant
};

// Ranks from 1, equal values sharing the mean of theirs.
std::vector<float> ranks_of(std::span<const float> values);

// Spearman's correlation: Pearson's of the ranks. `values` is [series, cells] row by row, with
// `stride` values from one series to the next.
CorrelationMatrix rank_correlation(std::span<const float> values, std::size_t series,
                                   std::size_t cells, std::size_t stride);

// -------------------------------------------------------------------------------------------------
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
