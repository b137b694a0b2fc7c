// Tokenizers out of the metadata of GGUF files, tokenizer.ggml.*, and into it: BPE of bytes (model
// "gpt2", whose split pattern has a name) and of characters by scores with bytes for those that are
// unknown (model "llama", SentencePiece's).
#pragma once

#include <string>

#include "filigree/tokenizer.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "text/tokenizer_files.h"

namespace filigree {

bool has_gguf_tokenizer(const GgufMetadata& metadata);

// Throws Error that names the model or split pattern that is not supported.
TokenizerSpec gguf_tokenizer(const GgufMetadata& metadata);

// Throws Error for tokenizers that no name of GGUF stands for. `vocabulary` is the number of rows
// of the embedding; ids without a token get one that is never used.
void write_gguf_tokenizer(const Tokenizer& tokenizer, std::int64_t vocabulary,
                          GgufEntries& entries);

}  // namespace filigree
