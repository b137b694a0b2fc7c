// Writing a model as a GGUF file.
#pragma once

#include <filesystem>

#include "filigree/model.h"
#include "io/gguf_writer.h"

namespace filigree {

// Matrices in the type, vectors in f32. `tokenizer` are entries of metadata that follow the
// model's. Throws Error for a model with adapters, for architectures and types that files do not
// have, and, once the file is written and removed again, for a configuration that it does not say
// in full.
void save_gguf(const Model& model, const std::filesystem::path& path, MatrixType type,
               const GgufEntries& tokenizer);

}  // namespace filigree
