// A small GPT-2 with random weights and the tokenizer of tests/golden/bpe-8k, as a model folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "filigree/model.h"
#include "support/golden.h"
#include "support/models.h"
#include "support/temporary_folder.h"

namespace filigree {

inline ModelConfig tiny_config(std::int64_t vocabulary = 8192, std::int64_t context = 64) {
  return parse_model_config({{"model_type", "gpt2"},
                             {"n_layer", 2},
                             {"n_head", 4},
                             {"n_embd", 32},
                             {"n_positions", context},
                             {"vocab_size", vocabulary}},
                            "tiny_config");
}

class ModelFolder {
 public:
  explicit ModelFolder(std::uint64_t seed = 1) {
    // Larger weights than a fresh model has, so that predictions differ from token to token.
    const std::unique_ptr<Model> model = make_model(tiny_config(), seed);
    enlarge_weights(*model, 10.0f);
    save_model(*model, path());
    for (const char* file : {"tokenizer.json", "vocab.json", "merges.txt"})
      std::filesystem::copy_file(golden_folder() / "bpe-8k" / file, path() / file);
  }

  // The same model with gates, as another folder.
  std::string gated(const std::filesystem::path& folder, const GateConfig& gate) const {
    std::filesystem::copy(path(), folder);
    const std::unique_ptr<Model> model = load_model(path());
    model->set_gate(gate);
    save_model(*model, folder);
    return folder.string();
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  std::string name() const { return path().string(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace filigree
