// What a model is trained on, and what is kept from it to measure it by; of texts, of token shards
// and of the sentences of tasks.
#pragma once

#include <array>

#include "base/name_table.h"

namespace filigree {

enum class DataSplit { kTrain, kHeldOut };
template <>
inline constexpr auto kNames<DataSplit> = std::to_array<Named<DataSplit>>(
    {{DataSplit::kTrain, "train"}, {DataSplit::kHeldOut, "held-out"}});

}  // namespace filigree
