// A small corpus, its shards and tokenizer, and models for them, for the tests of studies that
// train and evaluate.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/training_study.h"
#include "support/temporary_folder.h"
#include "text/shard_preparation.h"

// `statement` throws Type, and its message contains `part`.
#define EXPECT_THROWS(Type, statement, part) \
  EXPECT_THAT([&] { statement; },            \
              ::testing::ThrowsMessage<::filigree::Type>(::testing::HasSubstr(part)))

namespace filigree::study {

class TrainingStudyTest : public ::testing::Test {
 protected:
  TrainingStudyTest() { make_shards("shards", 1); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Shards of a corpus of their own, with their tokenizer.
  std::string make_shards(const std::string& name, std::uint64_t seed,
                          double held_out = 0.1) const {
    std::ofstream text(folder_ / (name + ".txt"), std::ios::binary);
    Corpus({.seed = seed}).write(0, 20000, [&](std::string_view block) { text << block; });
    text.close();
    PreparationOptions options;
    options.texts = {folder_ / (name + ".txt")};
    options.held_out_share = held_out;
    prepare_shards(options, train_tokenizer_for(options, {.vocab_size = 300}), folder_ / name);
    return path(name);
  }

  // A model with random weights for the shards.
  std::string make_model_folder(const std::string& name, const GateConfig& gate = {},
                                std::int64_t context = 32, std::uint64_t seed = 1) const {
    const auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                                      {"n_layer", 2},
                                                      {"n_head", 2},
                                                      {"n_embd", 16},
                                                      {"n_positions", context},
                                                      {"vocab_size", 300}},
                                                     "test"),
                                  seed);
    model->set_gate(gate);
    save_model(*model, folder_ / name);
    copy_tokenizer(folder_ / "shards", folder_ / name);
    return path(name);
  }

  const TemporaryFolder folder_;
};

}  // namespace filigree::study
