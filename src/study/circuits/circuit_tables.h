// Circuits as tables: how large they are, and of which parts.
#pragma once

#include <cstddef>
#include <span>

#include "filigree/circuit_study.h"
#include "study/data_table.h"

namespace filigree::study {

// A row a model and kind of part: accuracy, size, of how many, how many times fewer than the first
// model's. Kinds may be of several tasks.
DataTable sizes_table_of(std::span<const CircuitsOfKind> kinds);

// The first `most` parts of each model (0: all) with their scores, and whether the circuit keeps
// them; of attention edges every prompt keeps its own, and that column is empty.
DataTable parts_table_of(const CircuitsOfKind& circuits, std::size_t most);

}  // namespace filigree::study
