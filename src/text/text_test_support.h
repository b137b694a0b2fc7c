// Shared by the module's tests: small tokenizers, fixture files, expected errors.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/error.h"
#include "support/files.h"
#include "text/byte_level.h"
#include "text/tokenizer_files.h"

// `statement` throws Error, and its message contains `part`.
#define EXPECT_ERROR(statement, part) \
  EXPECT_THAT([&] { statement; },     \
              ::testing::ThrowsMessage<::filigree::Error>(::testing::HasSubstr(part)))

namespace filigree {

// A folder of its own for the running test, empty at first.
inline std::filesystem::path fresh_folder() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = std::filesystem::path(testing::TempDir()) / "filigree_text" /
                      (std::string(test->test_suite_name()) + "." + test->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// The 256 bytes as tokens 0..255 and one joined token for each rule, numbered from 256 on.
inline TokenizerSpec spec_with_rules(
    const std::vector<std::pair<std::string, std::string>>& rules) {
  TokenizerSpec spec;
  for (const std::uint8_t byte : bytes_in_alphabet_order())
    spec.vocabulary.push_back(
        {std::string(byte_level_character(byte)), static_cast<TokenId>(spec.vocabulary.size())});
  for (const auto& [left, right] : rules) {
    spec.rules.push_back({left, right, spec.rules.size()});
    spec.vocabulary.push_back({left + right, static_cast<TokenId>(spec.vocabulary.size())});
  }
  return spec;
}

inline BpeModel model_of(const TokenizerSpec& spec) {
  return BpeModel(Vocabulary(spec.vocabulary, spec.vocabulary_name), spec.rules, spec.rules_name,
                  spec.bpe);
}

}  // namespace filigree
