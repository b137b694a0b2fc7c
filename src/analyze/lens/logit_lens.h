// The logit lens: what a model would predict if it stopped early. The residual stream after each
// attention and each MLP goes through the model's own final normalisation and unembedding.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/interventions/applied_interventions.h"
#include "model/model.h"
#include "text/token_id.h"

namespace filigree {

enum class LensPlace { kBefore, kMiddle, kAfter };  // hook_resid_pre, _mid, _post

struct LensPoint {
  LensPlace place = LensPlace::kAfter;
  std::int64_t layer = 0;
};
std::string name_of(const LensPoint& point);  // "L3 resid_mid"
std::string tap_name(const LensPoint& point);

struct LensToken {
  TokenId id = 0;
  double probability = 0;
};

// One point at one position.
struct LensCell {
  std::vector<LensToken> top;  // the likeliest first; equal ones by id
  // Of the token that was asked about.
  std::int64_t rank = -1;  // 0: the likeliest
  double log_probability = 0;
};

struct LogitLens {
  std::vector<LensPoint> points;  // in the order of the computation
  std::int64_t positions = 0;
  std::vector<LensCell> cells;  // [point][position]

  const LensCell& at(std::size_t point, std::int64_t position) const {
    return cells[point * static_cast<std::size_t>(positions) + static_cast<std::size_t>(position)];
  }
};

struct LensOptions {
  std::int64_t top = 5;
  bool middle = false;  // also after each attention
  // The token to rank at every position; none: the prompt's own next token, where there is one.
  std::optional<TokenId> token = {};
  AppliedInterventions* interventions = nullptr;  // what the run changes; null: nothing
  std::function<void(std::size_t done, std::size_t total)> progress = {};  // points
};

// The stream before layer 0, then after each layer (and, asked for, its attention). Throws Error
// for an empty prompt and a token outside the vocabulary.
LogitLens logit_lens(const Model& model, const std::vector<TokenId>& ids,
                     const LensOptions& options = {});

// The cells of one point, from the stream [1, T, width] there; options.top and options.token count.
std::vector<LensCell> read_stream(const Model& model, const std::vector<TokenId>& ids,
                                  const Tensor& stream, const LensOptions& options = {});

}  // namespace filigree
