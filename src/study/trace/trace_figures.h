// Figures of traced prompts.
#pragma once

#include <filesystem>

#include "study/figures.h"
#include "study/trace/trace.h"

namespace filigree::study {

enum class TraceDrawing {
  kHeads,  // those that carry the pair looked at, and what modulates them
  kGraph,  // the pruned graph
};

// Throws Error where nothing is carried between tokens.
figure::CarriedPairFigure heads_figure(const TraceResult& result);
// Of each model at most `most` nodes, the most influential ones.
figure::FeatureGraphFigure graph_figure(const TraceResult& result, std::size_t most = 150);

void save_trace_figure(const TraceResult& result, TraceDrawing drawing,
                       const std::filesystem::path& file, const FigureStyle& style);

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::TraceDrawing> = std::to_array<Named<study::TraceDrawing>>(
    {{study::TraceDrawing::kHeads, "heads"}, {study::TraceDrawing::kGraph, "graph"}});

}  // namespace filigree
