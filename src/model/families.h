// The families that there are, each defined in a file of its name.
#pragma once

#include "model/family.h"

namespace filigree {

extern const Family kGpt2Family;
extern const Family kGptNeoFamily;
extern const Family kGptNeoxFamily;
extern const Family kLlamaFamily;
extern const Family kMistralFamily;
extern const Family kQwen2Family;
extern const Family kQwen3Family;
extern const Family kQwen3MoeFamily;
extern const Family kOlmoFamily;
extern const Family kOlmo2Family;
extern const Family kOlmo3Family;
extern const Family kOlmoeFamily;
extern const Family kGemmaFamily;
extern const Family kGemma2Family;
extern const Family kGemma3Family;
extern const Family kGemma3TextFamily;
extern const Family kPhiFamily;
extern const Family kPhi3Family;
extern const Family kSmolLm3Family;
extern const Family kGptJFamily;
extern const Family kOptFamily;
extern const Family kGptBigCodeFamily;
extern const Family kStableLmFamily;
extern const Family kStarcoder2Family;
extern const Family kCohereFamily;
extern const Family kHookedTransformerFamily;

}  // namespace filigree
