// Files with one JSON object a line.
#include "json/lines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

std::vector<std::int64_t> steps(std::string_view text, LastLine last = LastLine::kWhole) {
  std::vector<std::int64_t> found;
  for (JsonLines lines(text, "log.jsonl", last); lines.next();)
    found.push_back(lines.object().integer("step"));
  return found;
}

std::string message(std::string_view text, LastLine last = LastLine::kWhole) {
  return error_of([&] { steps(text, last); });
}

TEST(JsonLines, GiveEachLineWithItsNumber) {
  const std::string text = "{\"step\": 1}\r\n\n  \n{\"step\": 2}";
  JsonLines lines(text, "log.jsonl");
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.number(), 1u);
  EXPECT_EQ(lines.text(), "{\"step\": 1}");
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.number(), 4u);
  EXPECT_EQ(lines.object().integer("step"), 2);
  EXPECT_EQ(lines.place(), "log.jsonl, line 4");
  EXPECT_FALSE(lines.next());
  EXPECT_FALSE(lines.next());
  EXPECT_TRUE(steps("").empty());
  EXPECT_TRUE(steps("\n\n").empty());
}

TEST(JsonLines, MessagesNameFileLineAndByte) {
  EXPECT_EQ(message("{\"step\": 1}\n[]\n"),
            "json: 'log.jsonl, line 2': holds an array, should hold an object");
  const auto starts = [](std::string_view text, const std::string& start) {
    EXPECT_TRUE(message(text).starts_with("json: 'log.jsonl, line 2': byte " + start))
        << message(text);
  };
  using namespace std::string_view_literals;
  starts("{\"step\": 1}\n{\"step\" 2}\n", "8: parse error");
  starts("{\"step\": 1}\n{\"step\": 2} x", "12: parse error");
  starts("{\"step\": 1}\n{\"step\": 2}\0"sv, "11: a NUL byte");
  starts("{\"step\": 1}\n{\"step\": 2}\xff", "11: invalid UTF-8");
  starts("{\"step\": 1}\n{\"a\": 1, \"a\": 2}", "11: the key 'a' appears twice");
  starts("{\"step\": 1}\n" + std::string(60000, '[') + std::string(60000, ']'),
         "64: nested more than 64 levels");
}

TEST(JsonLines, ACutLastLineIsLeftOutWhereItMayBe) {
  const std::string whole = "{\"step\": 1}\n",
                    next = "{\"step\": 2, \"a\": [\"\u20ac\\u20ac\", true, 1e5]}";
  for (std::size_t size = 1; size < next.size(); ++size) {
    const std::string cut = next.substr(0, size);
    for (const char* behind : {"", "\n", "\n\n"}) {
      EXPECT_EQ(steps(whole + cut + behind, LastLine::kMayBeCut), std::vector<std::int64_t>{1})
          << cut;
      EXPECT_NE(message(whole + cut + behind), "no error") << cut;
    }
    // Not the last one.
    EXPECT_NE(message(whole + cut + "\n" + whole, LastLine::kMayBeCut), "no error") << cut;
  }
  EXPECT_EQ(steps(whole + next, LastLine::kMayBeCut), (std::vector<std::int64_t>{1, 2}));
}

// Only what a writer leaves that was stopped, not what it never wrote.
TEST(JsonLines, OtherFaultsOfALastLineAreErrors) {
  using namespace std::string_view_literals;
  for (const std::string_view line : {"{\"step\": 2} x"sv, "x"sv, "{\"step\": 2, \0"sv, "{\"\xff"sv,
                                      "{\"step\": 2}\xe2\x82"sv, "[1]"sv, "{\"a\": 1, \"a\": "sv})
    EXPECT_NE(message(std::string("{\"step\": 1}\n").append(line), LastLine::kMayBeCut), "no error")
        << line;
  EXPECT_NE(message(std::string(60000, '['), LastLine::kMayBeCut), "no error");
}

TEST(JsonLines, OpensFiles) {
  const TemporaryFolder folder;
  write_file(folder / "log.jsonl", "{\"step\": 1}\n{\"step\": 2}\n");
  JsonLines lines = JsonLines::open(folder / "log.jsonl");
  EXPECT_TRUE(lines.next() && lines.next());
  EXPECT_EQ(lines.object().integer("step"), 2);
  EXPECT_EQ(lines.place(), (folder / "log.jsonl").string() + ", line 2");
  EXPECT_NE(error_of([&] { JsonLines::open(folder / "none"); }), "no error");
}

TEST(JsonLines, ALineHasALimit) {
  const JsonLimits limits{.max_bytes = 12};
  const std::string text = "{\"step\": 1}\r\n{\"step\": 12345}\n";
  JsonLines lines(text, "log.jsonl", LastLine::kWhole, limits);
  EXPECT_TRUE(lines.next());
  EXPECT_EQ(error_of([&] { lines.next(); }),
            "json: 'log.jsonl, line 2': a line of more than 12 bytes, the most that are read");
}

double most_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

// Files with holes take no room on the disk; read to their end they would take all memory.
TEST(JsonLines, FilesOfAnySizeTakeLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers remember the memory that is read";
#endif
  const TemporaryFolder folder;
  write_file(folder / "log.jsonl", "{\"step\": 1}\n");
  std::error_code failure;
  std::filesystem::resize_file(folder / "log.jsonl", std::uintmax_t{1} << 40, failure);
  if (failure) GTEST_SKIP() << "no file of a terabyte: " << failure.message();
  const double before = most_megabytes();
  JsonLines endless = JsonLines::open(folder / "log.jsonl", LastLine::kMayBeCut);
  EXPECT_TRUE(endless.next());
  EXPECT_NE(error_of([&] { endless.next(); }).find("line 2': a line of more than 134217728 bytes"),
            std::string::npos);
  // Many lines, each short: what was read is given back.
  const std::string line = "{\"step\": 1, \"text\": \"" + std::string(1 << 20, 'x') + "\"}\n";
  {
    std::ofstream many(folder / "many.jsonl", std::ios::binary);
    for (int i = 0; i < 400; ++i) many << line;
  }
  std::int64_t count = 0;
  for (JsonLines lines = JsonLines::open(folder / "many.jsonl"); lines.next();) ++count;
  EXPECT_EQ(count, 400);
  EXPECT_LT(most_megabytes() - before, 250);
}

}  // namespace
}  // namespace filigree
