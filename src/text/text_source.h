// The documents of a text file of any size, one after the other in bounded memory.
//
// Documents are separated by <|endoftext|>, usually on a line of its own. Line breaks at both ends
// of a document belong to the layout of the file and are dropped; documents without text are
// skipped. One document may be larger than memory: beyond a limit it comes in pieces, cut after a
// paragraph, a line or a word, whichever of these is found first, and never inside a character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "text/text_source_bytes.h"

namespace filigree {

struct TextSourceOptions {
  std::size_t max_piece_bytes = std::size_t{1} << 20;
  // Put U+FFFD in place of invalid UTF-8 instead of failing.
  bool replace_invalid_utf8 = false;
};

struct TextPiece {
  // Well-formed UTF-8; empty only where nothing but line breaks ends a document in pieces.
  std::string text;
  bool begins_document = true;
  bool ends_document = true;
};

class TextSource {
 public:
  // Plain, .xz or .zst. Throws Error when the file cannot be read or the limit is below 64 bytes.
  explicit TextSource(const std::filesystem::path& path, TextSourceOptions options = {});

  // False at the end. Throws Error naming the file and the position for compressed data that is
  // corrupt or ends too early, and for invalid UTF-8.
  bool next(TextPiece& piece);

  std::uint64_t file_position() const { return bytes_->file_position(); }
  // Bytes of unpacked text read so far.
  std::uint64_t text_position() const { return buffer_offset_ + buffer_.size(); }

 private:
  void read_more();
  std::size_t safe_cut() const;
  std::string checked(std::size_t end) const;

  std::string name_;
  TextSourceOptions options_;
  std::unique_ptr<TextBytes> bytes_;
  std::string buffer_;  // from text byte buffer_offset_ on
  std::uint64_t buffer_offset_ = 0;
  std::size_t begin_ = 0;         // of the part that no piece holds yet
  std::size_t searched_ = 0;      // no separator begins before
  bool inside_document_ = false;  // a piece of it was given out already
  bool at_end_ = false;
};

}  // namespace filigree
