// What one row of logits says about the next token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "filigree/tokenizer.h"

namespace filigree {

// The logarithm of the sum of exponentials: a logit less this is a log probability.
double log_sum_of(std::span<const float> logits);

// The likeliest first; equal ones by id. `count` at most.
std::vector<TokenId> likeliest_tokens(std::span<const float> logits, std::size_t count);

// The place of a token in that order, from 0.
std::int64_t rank_of(std::span<const float> logits, TokenId id);

// KL(p || q) of the two predictions in nats.
double divergence(std::span<const float> p, std::span<const float> q);

}  // namespace filigree
