#include "text/text_source.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;
constexpr std::size_t kLeastPieceBytes = 64;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_line_break(char c) { return c == '\n' || c == '\r'; }

}  // namespace

TextSource::TextSource(const std::filesystem::path& path, TextSourceOptions options)
    : name_("'" + printable(path.string()) + "'"),
      options_(options),
      bytes_(TextBytes::open(path)) {
  require(options_.max_piece_bytes >= kLeastPieceBytes,
          "text source: pieces of {} bytes are too small; allow at least {}",
          options_.max_piece_bytes, kLeastPieceBytes);
  while (!at_end_ && buffer_.size() < kByteOrderMark.size()) read_more();
  if (buffer_.starts_with(kByteOrderMark)) begin_ = searched_ = kByteOrderMark.size();
}

void TextSource::read_more() {
  // What has been given out makes room first, so that the buffer stays within a piece and a block.
  buffer_.erase(0, begin_);
  buffer_offset_ += begin_;
  searched_ -= begin_;
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const std::size_t count = bytes_->read(std::span(buffer_).subspan(before));
  buffer_.resize(before + count);
  at_end_ = count == 0;
}

// Where a piece that may not grow further ends. Paragraphs are looked for in the second half only,
// lines and words in the last quarter, so that pieces do not become tiny.
std::size_t TextSource::safe_cut() const {
  const std::size_t limit = begin_ + options_.max_piece_bytes;
  const std::string_view piece = std::string_view(buffer_).substr(0, limit);
  const std::size_t half = begin_ + options_.max_piece_bytes / 2;
  const std::size_t three_quarters = begin_ + options_.max_piece_bytes / 4 * 3;
  const std::size_t paragraph = piece.rfind("\n\n");
  if (paragraph != std::string_view::npos && paragraph >= half) return paragraph + 2;
  const std::size_t line = piece.rfind('\n');
  if (line != std::string_view::npos && line >= three_quarters) return line + 1;
  // Before the space: byte-level tokens begin with it.
  const std::size_t word = piece.rfind(' ');
  if (word != std::string_view::npos && word >= three_quarters) return word;
  std::size_t cut = limit;
  for (int i = 0; i < 3 && continues_utf8(buffer_[cut]); ++i) --cut;
  return continues_utf8(buffer_[cut]) ? limit : cut;  // not UTF-8 anyway
}

std::string TextSource::checked(std::size_t end) const {
  const std::string_view text = std::string_view(buffer_).substr(begin_, end - begin_);
  const std::size_t invalid = first_invalid_utf8(text);
  if (invalid == text.size()) return std::string(text);
  if (options_.replace_invalid_utf8) return replace_invalid_utf8(text);
  fail("{}: invalid UTF-8 at byte {} of the text (0x{:02X})", name_,
       buffer_offset_ + begin_ + invalid, static_cast<unsigned char>(text[invalid]));
}

bool TextSource::next(TextPiece& piece) {
  while (true) {
    if (!inside_document_) {
      while (begin_ < buffer_.size() && is_line_break(buffer_[begin_])) ++begin_;
      searched_ = std::max(searched_, begin_);
    }
    const std::size_t separator = buffer_.find(kEndOfText, searched_);
    const bool found = separator != std::string::npos;
    if (!found)
      searched_ =
          std::max(begin_, buffer_.size() - std::min(buffer_.size(), kEndOfText.size() - 1));
    const std::size_t known = found ? separator : buffer_.size();
    // A separator that begins inside the piece must have been seen whole before a cut.
    const bool overlong = known - begin_ > options_.max_piece_bytes;
    if (!found && !at_end_ &&
        (!overlong || known - begin_ < options_.max_piece_bytes + kEndOfText.size())) {
      read_more();
      continue;
    }
    std::size_t end = overlong ? safe_cut() : known;
    const std::size_t next_begin = overlong ? end : found ? known + kEndOfText.size() : known;
    if (!overlong)
      while (end > begin_ && is_line_break(buffer_[end - 1])) --end;
    piece.text = checked(end);
    piece.begins_document = !inside_document_;
    piece.ends_document = !overlong;
    begin_ = next_begin;
    searched_ = std::max(searched_, begin_);
    // The end of a document that had pieces before is reported even when nothing but line breaks
    // is left, so that whoever counts documents sees it.
    const bool was_inside = std::exchange(inside_document_, overlong);
    if (!piece.text.empty() || (was_inside && !overlong)) return true;
    if (!found && at_end_) return false;
  }
}

}  // namespace filigree
