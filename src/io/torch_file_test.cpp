#include "io/torch_file.h"

#include <gmock/gmock.h>

#include <cstring>

#include "io/checkpoint.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using testing::HasSubstr;

// The small files that fuzzing starts from, made by hand: tensors a [2, 3], turned [3, 2] across
// its storage, part [2] of four, scalar, and a number.
std::string sample(const std::string& name) {
  return read_file(golden_folder().parent_path().parent_path() / "fuzz/corpus/torch_file" / name);
}

TorchFile parse(const std::string& bytes) {
  return TorchFile::from_bytes(std::as_bytes(std::span(bytes)), "test");
}

std::string refusal(const std::string& bytes) {
  return error_of([&] { parse(bytes); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<float> floats(const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.element_count()));
  read_f32(view, values);
  return values;
}

TEST(TorchFile, ReadsBothFormatsAndTurnsWhatLiesAcross) {
  for (const char* name : {"zip", "legacy"}) {
    const std::string bytes = sample(name);
    const TorchFile file = parse(bytes);
    ASSERT_EQ(file.tensors().size(), 4u) << name;
    EXPECT_EQ(file.tensors()[0].name, "a");
    EXPECT_THAT(file.tensors()[0].shape, testing::ElementsAre(2, 3));
    EXPECT_THAT(floats(file.tensors()[0]), testing::ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(file.tensors()[1].kind, TensorKind::kBf16);
    EXPECT_THAT(file.tensors()[1].shape, testing::ElementsAre(3, 2));
    EXPECT_THAT(floats(file.tensors()[1]), testing::ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(floats(file.tensors()[2]), testing::ElementsAre(2, 3));
    EXPECT_EQ(file.tensors()[3].kind, TensorKind::kI64);
    EXPECT_TRUE(file.tensors()[3].shape.empty());
  }
}

TEST(TorchFile, FindsTheDictionaryInsideAndParametersAndTypedTensors) {
  const std::string nested = sample("nested");
  ASSERT_EQ(parse(nested).tensors().size(), 1u);
  EXPECT_EQ(parse(nested).tensors()[0].name, "w");
  const std::string typed = sample("typed");
  EXPECT_THAT(floats(parse(typed).tensors()[0]), testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TorchFile, RefusesFunctionsByTheirNamesAndExecutesNothing) {
  EXPECT_THAT(refusal(sample("call")),
              testing::AllOf(HasSubstr("'os system'"), HasSubstr("nothing is executed")));
  EXPECT_THAT(
      refusal(replaced(sample("legacy"), "collections\nOrderedDict", "collections\nDefaultDict")),
      HasSubstr("'collections DefaultDict'"));
  // NEWOBJ in place of REDUCE.
  EXPECT_THAT(refusal(replaced(sample("legacy"), ")Rq", ")\x81q")), HasSubstr("operation 0x81"));
}

TEST(TorchFile, RefusesTensorsThatLeaveTheirStorage) {
  const std::string legacy = sample("legacy");
  // Three rows of three.
  EXPECT_THAT(refusal(replaced(legacy, "(K\x02K\x03t(K\x03K\x01t", "(K\x03K\x03t(K\x03K\x01t")),
              HasSubstr("reads element 8 of a storage that has 6"));
  EXPECT_THAT(
      refusal(replaced(legacy, "(K\x02K\x03t(K\x03K\x01t", "(K\x02K\x03t(K\x03K\x01K\x01t")),
      HasSubstr("do not fit together"));
  // A hundred times one element.
  EXPECT_THAT(refusal(replaced(legacy, std::string("(K\x02K\x03t(K\x03K\x01t", 12),
                               std::string("(K\x64K\x03t(K\x00K\x01t", 12))),
              HasSubstr("repeats elements"));
  EXPECT_THAT(refusal(replaced(legacy, "BFloat16Storage", "BoolStorage")), HasSubstr("cut off"));
}

TEST(TorchFile, RefusesWhatIsCutOffOrElse) {
  const std::string legacy = sample("legacy"), zip = sample("zip");
  for (std::size_t size = 0; size < legacy.size(); size += 7)
    EXPECT_NE(refusal(legacy.substr(0, size)), "") << size;
  for (std::size_t size = 0; size < zip.size(); size += 7)
    EXPECT_NE(refusal(zip.substr(0, size)), "") << size;
  const std::string turned = replaced(zip, "little", "bigger");
  EXPECT_THAT(error_of([&] {
                TorchFile::from_bytes(std::as_bytes(std::span(turned)), "test", nullptr,
                                      ZipChecksums::kIgnore);
              }),
              HasSubstr("'bigger'"));
  EXPECT_THAT(refusal(std::string("\x80\x02K\x01.", 5)), HasSubstr("neither a zip archive"));
  EXPECT_THAT(refusal("PK but no archive, and a bit longer than an end record"),
              HasSubstr("not a zip archive"));
}

TEST(TorchFile, NamesTheEntryThatIsDamaged) {
  const std::string zip = sample("zip");
  EXPECT_THAT(refusal(replaced(zip, "little", "bigger")),
              HasSubstr("entry 'archive/byteorder' has the CRC-32"));
  EXPECT_THAT(refusal(replaced(zip, "BFloat16Storage", "BFloat61Storage")),
              HasSubstr("entry 'archive/data.pkl' has the CRC-32"));
  // Numbers 0 to 5, of which the last becomes another one: found when they are read.
  const std::string damaged = replaced(zip, std::string("\0\0\xa0\x40", 4), "\x01\1\xa0\x40");
  const TorchFile file = parse(damaged);
  EXPECT_THAT(error_of([&] { floats(file.tensors()[0]); }),
              testing::AllOf(HasSubstr("entry 'archive/data/"), HasSubstr("and should have"),
                             HasSubstr("the file is damaged")));
  EXPECT_THAT(floats(file.tensors()[2]), testing::ElementsAre(2, 3));  // of another storage
  // Written without checksums, as torch.save does when it is told to.
  std::string without = damaged;
  for (std::size_t at = 0; (at = without.find("PK\x01\x02", at)) != std::string::npos; ++at)
    without.replace(at + 16, 4, 4, '\0');
  EXPECT_EQ(floats(parse(without).tensors()[0]).size(), 6u);
}

TEST(TorchFile, StandsForAFolderAndItsShards) {
  const TemporaryFolder folder;
  write_file(folder / "final.pth", sample("zip"));
  EXPECT_EQ(Checkpoint::open(folder / "final.pth").tensors().size(), 4u);
  write_file(folder / "pytorch_model.bin", sample("legacy"));
  EXPECT_EQ(Checkpoint::open(folder.path()).at("part").shape, std::vector<std::int64_t>({2}));
  std::filesystem::remove(folder / "pytorch_model.bin");
  write_file(folder / "pytorch_model-1.bin", sample("zip"));
  write_file(folder / "pytorch_model-2.bin", sample("nested"));
  write_file(folder / "pytorch_model.bin.index.json",
             R"({"weight_map": {"a": "pytorch_model-1.bin", "w": "pytorch_model-2.bin"}})");
  const Checkpoint sharded = Checkpoint::open(folder.path());
  EXPECT_EQ(sharded.files().size(), 2u);
  EXPECT_EQ(sharded.tensors().size(), 5u);
}

}  // namespace
}  // namespace filigree
