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
extern const Family kOlmoFamily;
extern const Family kOlmo2Family;
extern const Family kGemma2Family;
extern const Family kHookedTransformerFamily;

}  // namespace filigree
