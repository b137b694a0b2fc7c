// The number of a token, as models and token shards store it.
#pragma once

#include <cstdint>

namespace filigree {

using TokenId = std::int32_t;

}  // namespace filigree
