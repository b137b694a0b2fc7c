// The parts of a model that a task needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/interventions.h"
#include "filigree/model.h"
#include "filigree/ranks.h"
#include "filigree/tasks.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Runs of the clean prompts with parts replaced: the hot loop of circuit analysis.
//
// The clean and the corrupt run of a batch of prompts are computed once and kept. A patched run
// then starts at the first layer it changes, leaves out the positions before the first token at
// which clean and corrupt differ (where both runs agree, so that nothing changes), computes the
// last position's logits only, and shares a forward pass with other patched runs.

// What takes the place of the clean value.
enum class Replacement {
  kCorrupt,  // the value of the corrupt prompt (resampling)
  kZero,
  kMean,            // mean over all corrupt prompts and positions; of a pattern as kMeanByPosition
  kMeanByPosition,  // mean over the corrupt prompts that are as long, position by position
};

template <>
inline constexpr auto kNames<Replacement> =
    std::to_array<Named<Replacement>>({{Replacement::kCorrupt, "corrupt"},
                                       {Replacement::kZero, "zero"},
                                       {Replacement::kMean, "mean"},
                                       {Replacement::kMeanByPosition, "mean-by-position"}});

class SweepSection;
struct PatchedRuns;

struct PatchOptions {
  Metric metric = Metric::kLogitDifference;
  Replacement replacement = Replacement::kCorrupt;
  // In one forward pass; memory grows with it. Not given: what suits the model's device
  // (pass_limits.h).
  std::optional<std::int64_t> tokens_at_once = {};
  // Called with the patched runs done, each for all prompts of a batch, and how many there are; may
  // throw to stop.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  // Sees the points of a curve one by one as they are measured, the whole of it roughly first. A
  // point comes with the first prompts and again with more of them, the last time as it stays.
  // Empty: many are measured at once, which takes a little less time.
  std::function<void(std::size_t kept, double effect)> point = {};
  // Sees what is measured of the patched runs, each of which then has passes of its own: which one,
  // and its metric, alone in `patched`, for the prompts so far.
  std::function<void(std::size_t run, const PatchedRuns& so_far)> seen = {};
  // Keeps what is done, so that an interrupted sweep goes on; null: nothing is
  // kept.
  SweepSection* state = nullptr;
  // Share the forward passes of a sweep, and all get its result; null: this process does them all.
  Communicator* ranks = nullptr;
};

struct PatchedRuns {
  std::vector<double> clean, corrupt;        // the metric of each prompt
  std::vector<std::vector<double>> patched;  // [set][prompt]
};

// Runs every set on every prompt. Throws Error when a set asks for what the model or a prompt does
// not have.
PatchedRuns run_patched(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchSet>& sets, const PatchOptions& options = {});

// -------------------------------------------------------------------------------------------------
// How much a task needs each part of a model: the drop of the metric when the part takes its
// corrupt value.
//
//   exact                 M(clean) - M(clean run with the part replaced)
//   attribution           (x_clean - x_corrupt) . dM/dx at the clean run
//   integrated gradients  the same with the gradient averaged over runs whose token embeddings lie
//                         between clean and corrupt, at the midpoints of m equal steps
//
// Attribution is the first-order estimate of the exact drop, in one forward and one backward pass
// for all parts together. In a gated model the gates stay as the run sets them: their slope is 0
// wherever it exists, and the straight-through gradient of training is none of the metric's.

struct Importance {
  std::vector<PatchTarget> targets;
  std::vector<double> clean, corrupt;      // the metric of each prompt
  std::vector<std::vector<double>> drops;  // [target][prompt]

  Estimate of(std::size_t target) const { return estimate(drops[target]); }
  // Indices of the targets, the largest absolute mean first; equal ones in the targets' order.
  std::vector<std::size_t> order() const;
};

Importance exact_importance(const Model& model, const std::vector<TaskPrompt>& prompts,
                            const std::vector<PatchTarget>& targets,
                            const PatchOptions& options = {});

// `steps` 0: the gradient at the clean run; otherwise integrated gradients of so many steps. Throws
// Error for a replacement other than kCorrupt or kZero, and for accuracy as a metric.
Importance attributed_importance(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const std::vector<PatchTarget>& targets, int steps,
                                 const PatchOptions& options = {});

// -------------------------------------------------------------------------------------------------
// Circuits: the few parts that explain a task, the others taking corrupt (or mean, or zero) values.
//
// Parts are kept in the order of their importance. The effect of keeping the first k of N is
//
//   e(k) = (M(k) - M_corrupt) / (M_clean - M_corrupt)
//
// of the mean metrics: 1 for all of them, and 0 for none of them when the parts are all heads, the
// replacement is the corrupt value and clean and corrupt prompts end with the same token. The size
// of the circuit at a level is the smallest k from which on e never falls below it again.

struct CurvePoint {
  std::size_t kept = 0;   // of the order
  std::size_t parts = 0;  // what is left of them without those that lead nowhere
  double metric = 0;      // mean
  double effect = 0;
  std::optional<double> error = {};  // standard error of the effect, a ratio of two means
};

struct Curve {
  std::vector<CurvePoint> points;  // kept rises from 0 to all
  Estimate clean, corrupt;         // the metric

  // The point from which on the effect of all points is at least `level`; null when even the last
  // one is below it.
  const CurvePoint* at(double level) const;
  // Its number of kept parts.
  std::optional<std::size_t> size_at(double level) const;
  // Mean of the effect over the share of parts kept, from none to all (trapezoids).
  double area() const;
};

struct CircuitCurve : Curve {
  std::vector<PatchTarget> order;
};

// Keeps the first k of the order for every k in `sizes` (empty: every k from 0 to N; 0 and N are
// always among them); with a level, the size there is searched for (measured_curve). Throws Error
// when clean and corrupt have the same mean metric.
CircuitCurve keep_first(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchTarget>& order, std::vector<std::size_t> sizes,
                        const PatchOptions& options = {}, std::optional<double> level = {});
// In the order of the importance.
CircuitCurve keep_most_important(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const Importance& importance, std::vector<std::size_t> sizes,
                                 const PatchOptions& options = {});

// An order by measured effects instead of single importances, which miss that parts stand in for
// each other. Removal starts from the whole model and takes away, again and again, the part whose
// loss leaves the highest metric; addition starts from nothing and adds the part that brings the
// highest, which misses parts that do nothing without each other. At each step only the
// `candidates` parts that are next by importance are tried (0: all).
enum class Greedy { kRemoval, kAddition };
std::vector<PatchTarget> greedy_order(const Model& model, const std::vector<TaskPrompt>& prompts,
                                      const Importance& importance, Greedy greedy,
                                      std::size_t candidates, const PatchOptions& options = {});

// The curve of given metrics, [point][prompt]: what keep_first computes from its runs.
std::vector<CurvePoint> curve_points(const std::vector<std::size_t>& sizes,
                                     const PatchedRuns& runs);

// For parts too many to try every number of them: every size up to a few, then ever further apart.
std::vector<std::size_t> spread_sizes(std::size_t all);

// A curve at `sizes` (0 and `all` are added). With a level, sizes between the point at that level
// and the one before it are tried as well, halving the gap, until none is left, so that the size at
// the level is exact as long as the effect rises between neighbouring points.
// `run` measures some sizes under the options that it is given: those of the call, which see each
// run where options.point wants to see points.
using MeasureSizes =
    std::function<PatchedRuns(const std::vector<std::size_t>& sizes, const PatchOptions& options)>;
Curve measured_curve(std::size_t all, std::vector<std::size_t> sizes, std::optional<double> level,
                     const PatchOptions& options, const MeasureSizes& run);

// -------------------------------------------------------------------------------------------------
// Single attention edges: cells (layer, head, query, key) of the attention patterns.
//
// Prompts have their own lengths, and a sparse model opens its own gates in each, so that each
// prompt has its own cells: those that differ between the clean pattern and its replacement
// (corrupt or zero). In a dense model these are nearly all; in a gated one only cells that are open
// in the clean or the corrupt run, which are few. A circuit of k cells keeps the k most important
// ones of each prompt.

struct AttentionCell {
  std::int64_t layer = 0, head = 0, query = 0, key = 0;
  friend bool operator==(const AttentionCell&, const AttentionCell&) = default;
};

struct CellScores {
  struct OfPrompt {
    std::vector<AttentionCell> cells = {};
    std::vector<double> drops = {};  // of the metric, when the cell alone is replaced

    // Indices of the cells, the largest absolute drop first; equal ones in the cells' order.
    std::vector<std::size_t> order() const;
  };
  std::vector<OfPrompt> prompts = {};
  std::vector<double> clean = {}, corrupt = {};  // the metric of each prompt

  double mean_cells() const;
  std::size_t most_cells() const;
};

// A run a cell. Throws Error for a replacement other than kCorrupt or kZero, as do the others.
CellScores exact_cell_scores(const Model& model, const std::vector<TaskPrompt>& prompts,
                             const PatchOptions& options = {});

// (pattern(clean) - replacement) * dM/d pattern at the clean run, or with the gradient averaged
// over `steps` runs between the embeddings of clean and corrupt.
CellScores attributed_cell_scores(const Model& model, const std::vector<TaskPrompt>& prompts,
                                  int steps, const PatchOptions& options = {});

// Keeps each prompt's k most important cells, everything else of the patterns replaced (gates that
// open only in the changed run included), for every k in `sizes` (empty: spread_sizes). With a
// level, the size there is searched for. Unlike heads and edges, cells carry only where a head
// looks, not what it finds there, so that keeping none of them need not be the corrupt run.
Curve keep_cells(const Model& model, const std::vector<TaskPrompt>& prompts,
                 const CellScores& scores, std::vector<std::size_t> sizes,
                 std::optional<double> level, const PatchOptions& options = {});

// -------------------------------------------------------------------------------------------------
// Circuits of GPT-2 small as published, and how well an importance agrees with them.
//
//   ioi           Wang et al. 2022, "Interpretability in the Wild: a Circuit for Indirect Object
//                 Identification in GPT-2 small", arXiv 2211.00593: 26 heads by class
//   greater-than  Hanna et al. 2023, "How does GPT-2 compute greater-than?", arXiv 2305.00586:
//                 8 heads and the MLPs 8 to 11

struct PublishedPart {
  PatchTarget target;
  std::string_view role;  // "name mover"
};

struct PublishedCircuit {
  std::string_view task;
  std::string_view source;
  std::vector<PublishedPart> parts;

  const PublishedPart* find(const PatchTarget& target) const;
  bool speaks_of(Site site) const;
};

// Of that task and a model of GPT-2 small's shape (whose weights nobody checks); null when nothing
// was published.
const PublishedCircuit* published_circuit(std::string_view task, const ModelConfig& config);

// Scores of parts against a published circuit. Parts of a kind that the circuit does not speak of
// (MLPs in that of ioi) do not count.
struct Agreement {
  std::size_t published = 0;  // parts of the published circuit that have a score
  std::size_t kept = 0;       // parts of the circuit that was found
  std::size_t common = 0;
  double precision = 0;  // common / kept
  double recall = 0;     // common / published
  // Probability that a part of the published circuit has a higher score than one outside it: 1 when
  // all have, 0.5 for chance. The area under the receiver operating characteristic.
  double area = 0.5;
};

// `parts` and their scores (the higher the more important), each once, and those that were kept.
// Throws Error when there is no part inside or outside the published circuit.
Agreement agreement(const PublishedCircuit& circuit, const std::vector<PatchTarget>& parts,
                    const std::vector<double>& scores, const std::vector<PatchTarget>& kept);

// -------------------------------------------------------------------------------------------------
// What a long sweep has done so far, in a file, so that an interrupted one goes on where it stopped
// and ends with the same bits.
//
// A file holds sections, one a sweep, each under a name and a key: a hash of everything that its
// numbers depend on (model, prompts, options). A section whose key is another belongs to another
// sweep and is refused, as is a file that is damaged. The file is replaced as a whole, so a crash
// leaves the last state that was saved.

// A 64-bit hash of a sequence of values; the same on every machine.
class SweepKey {
 public:
  SweepKey& add(std::uint64_t number);
  SweepKey& add(std::string_view text);
  // Configuration, parameters, gate biases and adapters.
  SweepKey& add(const Model& model);
  SweepKey& add(const std::vector<TaskPrompt>& prompts);
  std::uint64_t value() const { return hash_; }

 private:
  void mix(std::span<const std::byte> bytes);
  std::uint64_t hash_ = 0x9E3779B97F4A7C15u;
};

class SweepState;

// One sweep's part of the file.
class SweepSection {
 public:
  // Steps are numbered in the order in which sweeps ask for them, also over several sweeps: work
  // that is repeated from the start asks for the same ones again.
  std::size_t next_step() { return next_++; }
  const std::vector<double>* find(std::size_t step) const;
  // Keeps a step's values and saves the file now and then.
  void add(std::size_t step, std::vector<double> values);
  std::size_t steps() const { return steps_.size(); }

 private:
  friend class SweepState;
  SweepState* state_ = nullptr;
  std::uint64_t key_ = 0;
  std::size_t next_ = 0;
  std::map<std::size_t, std::vector<double>> steps_;
};

class SweepState {
 public:
  // Reads the file if there is one. Throws Error for one that is not a sweep state or is damaged.
  // Of several ranks that share a sweep all read it and one writes.
  explicit SweepState(std::filesystem::path path, bool writes = true);
  SweepState(const SweepState&) = delete;
  SweepState& operator=(const SweepState&) = delete;

  // The section of that name, new or as the file has it; valid as long as the state. Throws Error
  // when the file's section has another key.
  SweepSection& section(const std::string& name, std::uint64_t key);

  void save();                // does nothing where another rank writes
  std::size_t steps() const;  // of all sections

 private:
  friend class SweepSection;
  void read(std::string_view bytes);
  void save_now_and_then();

  std::filesystem::path path_;
  bool writes_;
  std::map<std::string, SweepSection> sections_;
  std::optional<std::chrono::steady_clock::time_point> last_save_;
};

}  // namespace filigree
