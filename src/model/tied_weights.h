// The output layer of a model that shares the token embedding, in a checkpoint that stores it.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "model/family.h"

namespace filigree {

// What transformers makes of it. Where the configuration ties the output to the embedding and the
// checkpoint stores the output alone, that is the embedding: it gets the embedding's name. Where
// both are stored with different numbers they are not tied, which is warned about. Returns the
// configuration of what was found; `source` names the checkpoint in messages.
ModelConfig settle_tied_weights(const Family& family, ModelConfig config,
                                std::vector<StoredParameter>& stored, const std::string& source);

}  // namespace filigree
