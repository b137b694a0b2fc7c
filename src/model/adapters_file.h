// The file of a model folder that holds the adapters of the weights beside it.
#pragma once

namespace filigree {

inline constexpr const char* kAdaptersFile = "adapters.safetensors";

}  // namespace filigree
