// JSON Lines: a file with one JSON value a line, read line by line. Each line is a text by itself
// (json.h), and messages name the file and the line. Blank lines are passed over. A line may be as
// long as JSON text may be (limits.h); the file may be of any size: what was read of it is given
// back.
//
//   for (JsonLines lines = JsonLines::open("log.jsonl"); lines.next();)
//     use(lines.object().integer("step"));
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "json/json_limits.h"
#include "json/object.h"

namespace filigree {

// What the last line of a file may be.
enum class LastLine {
  kWhole,
  kMayBeCut,  // a run that goes on, or was killed, leaves the start of a line: it is left out
};

class JsonLines {
 public:
  // `text` must outlive the object.
  JsonLines(std::string_view text, std::string source, LastLine last = LastLine::kWhole,
            const JsonLimits& limits = {});
  static JsonLines open(const std::filesystem::path& path, LastLine last = LastLine::kWhole,
                        const JsonLimits& limits = {});

  // Goes to the next line; false at the end of the file. Throws Error when the line is not a JSON
  // object.
  bool next();

  // Of the current line, without its line break.
  std::string_view text() const { return line_; }
  std::size_t number() const { return number_; }
  const JsonObject& object() const { return *object_; }
  // "log.jsonl, line 7", as messages name it.
  std::string place() const;

 private:
  std::shared_ptr<const MappedFile> file_;
  // The rest of the line that begins there, without its break; throws Error where it is too long.
  std::string_view take_line();
  void release_what_was_read();

  std::string_view rest_;
  std::size_t released_ = 0;  // bytes of file_
  std::string source_;
  LastLine last_;
  JsonLimits limits_;
  std::string_view line_;
  std::size_t number_ = 0;
  std::unique_ptr<const JsonObject> object_;
};

}  // namespace filigree
