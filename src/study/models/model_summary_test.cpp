#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/model_study.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "support/model_folder.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ModelSummary, ReadsNoWeights) {
  const ModelFolder folder;
  const std::int64_t loads = models_loaded();
  const ModelSummary summary = run(SummaryRequest{.model = folder.name(), .batch = 2}, {}, {});
  EXPECT_EQ(models_loaded(), loads);
  std::int64_t parts = 0;
  for (const ModelPart& part : summary.parts) parts += part.parameters;
  EXPECT_EQ(summary.parameters, parts);
  EXPECT_EQ(summary.parameters, load_model(folder.path())->parameter_count());
  EXPECT_EQ(summary.memory.length, 64);
  EXPECT_EQ(summary.tokenizer.tokens, 8192);
  const Json json = to_json(summary);
  EXPECT_EQ(json["memory_bytes"]["batch"], 2);
  EXPECT_EQ(json["tokenizer"]["special"]["<|endoftext|>"], 0);
  EXPECT_TRUE(json["tokenizer"]["problem"].is_null());
  EXPECT_TRUE(json["gate"].is_null());
}

TEST(ModelSummary, ABrokenTokenizerIsPartOfIt) {
  const ModelFolder folder;
  std::ofstream(folder.path() / "tokenizer.json") << "{";
  const Json json = to_json(run(SummaryRequest{.model = folder.name()}, {}, {}));
  EXPECT_THAT(json["tokenizer"]["problem"].get<std::string>(), HasSubstr("tokenizer.json"));
  EXPECT_TRUE(json["tokenizer"]["vocabulary"].is_null());
  for (const char* file : {"tokenizer.json", "vocab.json", "merges.txt"})
    std::filesystem::remove(folder.path() / file);
  EXPECT_TRUE(to_json(run(SummaryRequest{.model = folder.name()}, {}, {}))["tokenizer"].is_null());
}

TEST(ModelSummary, ALengthBeyondTheContextIsAnError) {
  const ModelFolder folder;
  EXPECT_THAT([&] { run(SummaryRequest{.model = folder.name(), .length = 65}, {}, {}); },
              ThrowsMessage<Error>(HasSubstr("a length of 65 is more than")));
}

TEST(ModelShape, AWidthThatHeadsDoNotShareIsNoRequest) {
  const ModelShape shape{.heads = 4, .width = 33};
  EXPECT_THAT([&] { shape.config(); },
              ThrowsMessage<RequestError>("a width of 33 is not a multiple of 4 heads"));
}

TEST(Conversion, WhatIsNoNumberIsNoRequest) {
  const ModelFolder folder;
  const TemporaryFolder out;
  for (const float by : {std::nanf(""), INFINITY})
    EXPECT_THROW(
        run(ConversionRequest{.model = folder.name(), .out = out / "new", .raise_gates = by}, {},
            {}),
        RequestError);
  EXPECT_FALSE(std::filesystem::exists(out / "new"));
}

}  // namespace
}  // namespace filigree::study
