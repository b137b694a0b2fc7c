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
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/component.h"

namespace filigree {

// Throws Error for text that is no selection, and for heads that do not exist, saying which do.
std::vector<HeadId> parse_heads(std::string_view text, std::int64_t layers, std::int64_t heads);

// Throws Error for text that is no selection, whatever the model.
void check_heads(std::string_view text);

std::vector<HeadId> all_heads(std::int64_t layers, std::int64_t heads);

}  // namespace filigree
