// Single attention edges: cells (layer, head, query, key) of the attention patterns.
//
// Prompts have their own lengths, and a sparse model opens its own gates in each, so that each
// prompt has its own cells: those that differ between the clean pattern and its replacement
// (corrupt or zero). In a dense model these are nearly all; in a gated one only cells that are open
// in the clean or the corrupt run, which are few. A circuit of k cells keeps the k most important
// ones of each prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/circuit/circuit.h"

namespace filigree {

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

}  // namespace filigree
