// The names of circuit-tracer's files, for what reads and what writes them.
#pragma once

#include <cstdint>
#include <string>

namespace filigree {

inline constexpr const char* kTranscoderConfig = "config.yaml";
inline constexpr const char* kCrossLayerKind = "cross_layer_transcoder";
inline constexpr const char* kPerLayerKind = "transcoder_set";

std::string encoder_file(std::int64_t layer);
std::string decoder_file(std::int64_t layer);
std::string layer_file(std::int64_t layer);

}  // namespace filigree
