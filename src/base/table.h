// Columns of text that line up on a terminal, whatever the script of the words in them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

enum class Align { kLeft, kRight };

class Table {
 public:
  // Without titles (all empty) no heading is printed.
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns);

  // As many cells as there are columns.
  void add(std::vector<std::string> cells);

  // Each line begins with `indent` spaces and ends with a newline, without spaces before it.
  std::string text(std::size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns that UTF-8 text takes on a terminal: none for combining marks, two for the wide
// characters of East Asia and for emoji.
std::size_t display_width(std::string_view text);

// `text` broken between words so that no line passes `columns`. The first line is taken to begin at
// column `indent`; the others are indented to it.
std::string wrap(std::string_view text, std::size_t columns, std::size_t indent);

// "3.42 s", "18.3 ms", "250 us".
std::string format_seconds(double seconds);

}  // namespace filigree
