// A prompt as analyses take it: token ids, and how each token is shown.
#pragma once

#include <string>
#include <vector>

#include "text/token_id.h"

namespace filigree {

struct Prompt {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens = {};  // one a token, for labels; or none
};

}  // namespace filigree
