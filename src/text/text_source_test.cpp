#include "text/text_source.h"

#include <lzma.h>
#include <zstd.h>

#include "text/text_test_support.h"

namespace filigree {
namespace {

std::filesystem::path write(const std::string& name, std::string_view bytes) {
  return write_file(std::filesystem::path(testing::TempDir()) / ("filigree_text_source_" + name),
                    bytes);
}

std::string xz(std::string_view text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(
                6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

std::string zst(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  // With a checksum, as the zstd program writes it.
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  const std::size_t size =
      ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size());
  ZSTD_freeCCtx(context);
  EXPECT_EQ(ZSTD_isError(size), 0u);
  packed.resize(size);
  return packed;
}

std::vector<TextPiece> pieces(const std::filesystem::path& path, TextSourceOptions options = {}) {
  TextSource source(path, options);
  std::vector<TextPiece> all;
  TextPiece piece;
  while (source.next(piece)) all.push_back(piece);
  EXPECT_FALSE(source.next(piece));
  EXPECT_EQ(source.file_position(), std::filesystem::file_size(path));
  return all;
}

std::vector<std::string> documents(const std::filesystem::path& path) {
  std::vector<std::string> all;
  for (const TextPiece& piece : pieces(path)) {
    EXPECT_TRUE(piece.begins_document && piece.ends_document);
    all.push_back(piece.text);
  }
  return all;
}

using Texts = std::vector<std::string>;

// Text that does not compress away, so that packed files have many blocks to damage.
std::string varied_text(std::size_t bytes) {
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += "word" + std::to_string(state >> 40) + ((state >> 33) % 11 == 0 ? "\n" : " ");
    if ((state >> 34) % 499 == 0) text += "\n<|endoftext|>\n";
  }
  return text + "end";
}

TEST(TextSource, CutsDocumentsAtSeparators) {
  EXPECT_EQ(documents(write("plain", "one\ntwo\n\nthree\n<|endoftext|>\nfour\n<|endoftext|>\n")),
            (Texts{"one\ntwo\n\nthree", "four"}));
  EXPECT_EQ(documents(write("no_last", "a\r\n<|endoftext|>\r\n b ")), (Texts{"a", " b "}));
  EXPECT_EQ(documents(write("inline", "a<|endoftext|>b<|endoftext|><|endoftext|>\n\n")),
            (Texts{"a", "b"}));
  EXPECT_EQ(documents(write("nearly", "a <|endoftext| <|endoftext|")),
            (Texts{"a <|endoftext| <|endoftext|"}));
  EXPECT_EQ(documents(write("empty", "")), Texts{});
  EXPECT_EQ(documents(write("layout", "\n\n<|endoftext|>\n\r\n")), Texts{});
}

TEST(TextSource, SkipsAByteOrderMark) {
  EXPECT_EQ(documents(write("bom",
                            "\xEF\xBB\xBF"
                            "a")),
            Texts{"a"});
  EXPECT_EQ(documents(write("bom_only", "\xEF\xBB\xBF")), Texts{});
}

TEST(TextSource, ReadsCompressedFilesWhateverTheirName) {
  const std::string text = varied_text(1 << 20);
  const Texts expected = documents(write("a.xz", text));
  ASSERT_GT(expected.size(), 100u);
  EXPECT_EQ(documents(write("b.txt", xz(text))), expected);
  EXPECT_EQ(documents(write("c.txt", zst(text))), expected);
}

TEST(TextSource, ReadsSeveralStreamsInOneFile) {
  EXPECT_EQ(documents(write("two_xz", xz("a<|endo") + xz("ftext|>b"))), (Texts{"a", "b"}));
  EXPECT_EQ(documents(write("two_zst", zst("a<|endo") + zst("") + zst("ftext|>b"))),
            (Texts{"a", "b"}));
  // A frame to be skipped, as pzstd writes it first.
  EXPECT_EQ(
      documents(write("skip_zst", std::string("\x50\x2A\x4D\x18\x03\0\0\0xyz", 11) + zst("a"))),
      Texts{"a"});
  EXPECT_EQ(documents(write("empty_xz", xz(""))), Texts{});
  EXPECT_EQ(documents(write("empty_zst", zst(""))), Texts{});
}

TEST(TextSource, NamesThePlaceWhereCompressedDataEnds) {
  const std::string text = varied_text(300000);
  for (const auto& [name, packed] :
       {std::pair{"cut_xz", xz(text)}, std::pair{"cut_zst", zst(text)}})
    for (const std::size_t size : {packed.size() - 1, packed.size() / 2, std::size_t{13}}) {
      const auto path = write(name, packed.substr(0, size));
      EXPECT_ERROR(pieces(path), "ends too early, at byte " + std::to_string(size));
      EXPECT_ERROR(pieces(path), name);
    }
}

TEST(TextSource, NeverGivesOutDamagedText) {
  const std::string text = varied_text(3000);
  const Texts expected = documents(write("whole", text));
  for (const auto& [name, packed] :
       {std::pair{"bad_xz", xz(text)}, std::pair{"bad_zst", zst(text)}}) {
    std::size_t tried = 0;
    std::size_t refused = 0;
    for (std::size_t at = 6; at < packed.size(); at += 7, ++tried) {
      std::string damaged = packed;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      try {
        // A few bits carry nothing; whatever comes through must be the text.
        EXPECT_EQ(documents(write(name, damaged)), expected) << at;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
        ++refused;
      }
    }
    EXPECT_GT(refused + 3, tried);
  }
  EXPECT_ERROR(pieces(write("tail_xz", xz(text) + "rubbish rubbish!")), "corrupt near byte");
  EXPECT_ERROR(pieces(write("tail_zst", zst(text) + "rubbish rubbish!")), "corrupt near byte");
}

TEST(TextSource, RefusesToUnpackWithoutBounds) {
  // A frame that wants a window of 2 GiB: magic, a header with a window byte of exponent 21, an
  // empty last block.
  const std::string greedy("\x28\xB5\x2F\xFD\x00\xA8\x01\x00\x00", 9);
  EXPECT_ERROR(pieces(write("greedy", greedy)), "too much memory");
}

TEST(TextSource, NamesOtherCompressions) {
  EXPECT_ERROR(TextSource(write("gz", "\x1F\x8B\x08")), "is a gzip file");
  EXPECT_ERROR(TextSource(write("bz", "BZh91AY")), "is a bzip2 file");
  EXPECT_ERROR(TextSource(write("zip", "PK\x03\x04")), "is a zip file");
}

TEST(TextSource, RefusesWhatIsNoFile) {
  EXPECT_ERROR(TextSource("/nonexistent/text"), "'/nonexistent/text': No such file");
  EXPECT_ERROR(TextSource{testing::TempDir()}, "it is a folder");
}

TEST(TextSource, NamesOrReplacesInvalidUtf8) {
  const std::string text = std::string(200000, 'x') + "<|endoftext|>\n\nab\xC3(\xFF";
  const auto path = write("invalid", text);
  EXPECT_ERROR(pieces(path), "invalid UTF-8 at byte 200017 of the text (0xC3)");
  EXPECT_ERROR(pieces(write("invalid_xz", xz(text))), "invalid UTF-8 at byte 200017 of the text");
  const auto all = pieces(path, {.replace_invalid_utf8 = true});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].text, "ab\xEF\xBF\xBD(\xEF\xBF\xBD");
  EXPECT_ERROR(pieces(write("incomplete", "a\xE2\x82")), "invalid UTF-8 at byte 1 of the text");
}

// The pieces of a document put together again.
std::string joined(const std::vector<TextPiece>& all, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(all[i].text.size(), limit);
    EXPECT_EQ(all[i].begins_document, i == 0);
    EXPECT_EQ(all[i].ends_document, i + 1 == all.size());
    text += all[i].text;
  }
  return text;
}

TEST(TextSource, CutsHugeDocumentsAtSafePlaces) {
  constexpr std::size_t kLimit = 100;
  const TextSourceOptions options{.max_piece_bytes = kLimit};
  const std::string paragraph = std::string(60, 'p') + "\n\n" + std::string(90, 'q');
  auto all = pieces(write("paragraph", paragraph), options);
  EXPECT_EQ(all[0].text, std::string(60, 'p') + "\n\n");
  EXPECT_EQ(joined(all, kLimit), paragraph);

  const std::string lines = std::string(80, 'l') + "\n" + std::string(80, 'm');
  all = pieces(write("lines", lines), options);
  EXPECT_EQ(all[0].text, std::string(80, 'l') + "\n");
  EXPECT_EQ(joined(all, kLimit), lines);

  const std::string words = std::string(90, 'w') + " " + std::string(60, 'v');
  all = pieces(write("words", words), options);
  EXPECT_EQ(all[0].text, std::string(90, 'w'));
  EXPECT_EQ(joined(all, kLimit), words);

  std::string euros;  // three bytes each, and 100 is no multiple of 3
  for (int i = 0; i < 5000; ++i) euros += "€";
  all = pieces(write("characters", euros), options);
  EXPECT_EQ(all[0].text.size(), 99u);
  EXPECT_EQ(joined(all, kLimit), euros);
}

TEST(TextSource, FindsASeparatorBehindEveryLength) {
  // Wherever the separator lies relative to the limit and to blocks that are read, pieces and
  // documents come out the same.
  for (std::size_t length = 1; length < 260; ++length) {
    const std::string text = std::string(length, 'a');
    const auto all = pieces(write("sweep", text + "<|endoftext|>b"), {.max_piece_bytes = 100});
    ASSERT_GE(all.size(), 2u);
    EXPECT_EQ(all.back().text, "b");
    EXPECT_EQ(joined({all.begin(), all.end() - 1}, 100), text) << length;
  }
  for (const std::size_t around : {std::size_t{65530}, std::size_t{131072 - 10}})
    for (std::size_t extra = 0; extra < 24; ++extra)
      EXPECT_EQ(documents(write("blocks", std::string(around + extra, 'a') + "<|endoftext|>b")),
                (Texts{std::string(around + extra, 'a'), "b"}));
}

TEST(TextSource, SaysThatADocumentEndsWhenOnlyLineBreaksAreLeft) {
  const std::string text = std::string(98, 'a') + "\n\n" + std::string(70, '\n');
  const auto all = pieces(write("breaks", text + "<|endoftext|>b"), {.max_piece_bytes = 100});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_FALSE(all[0].ends_document);
  EXPECT_EQ(all[1].text, "");
  EXPECT_TRUE(all[1].ends_document && !all[1].begins_document);
  EXPECT_TRUE(all[2].begins_document && all[2].ends_document);
}

TEST(TextSource, RefusesTinyPieces) {
  EXPECT_ERROR(TextSource(write("tiny", "a"), {.max_piece_bytes = 63}), "at least 64");
}

}  // namespace
}  // namespace filigree
