#include "filigree/analyze/task/user_task.h"

#include <fmt/format.h>

#include "filigree/analyze/task/tasks.h"
#include "filigree/base/error.h"
#include "filigree/base/mapped_file.h"
#include "filigree/base/strings.h"
#include "filigree/io/json.h"

namespace filigree {
namespace {

std::vector<std::string> texts(const JsonObject& object, const char* key) {
  const auto found = object.raw().find(key);
  require(found != object.raw().end(),
          "{}: '{}' is missing; a line has clean, corrupt, answer, wrong", object.source(), key);
  if (found->is_string()) return {found->get<std::string>()};
  require(found->is_array() && !found->empty() && found->size() <= kMostAnswers,
          "{}: '{}' is neither a text nor a list of 1 to {} texts", object.source(), key,
          kMostAnswers);
  std::vector<std::string> list;
  for (const nlohmann::json& item : *found) {
    require(item.is_string(), "{}: '{}' holds something that is not a text", object.source(), key);
    list.push_back(item.get<std::string>());
  }
  return list;
}

PromptText parse_line(std::string_view line, const std::string& source) {
  JsonLimits limits;
  limits.max_bytes = kMostTaskLineBytes;
  const JsonObject object(parse_json(line, source, limits), source);
  for (const std::string& key : object.keys())
    require(key == "clean" || key == "corrupt" || key == "answer" || key == "wrong",
            "{}: unknown key '{}'; a line has clean, corrupt, answer, wrong", source,
            printable(key));
  return {object.string("clean"), object.string("corrupt"), texts(object, "answer"),
          texts(object, "wrong")};
}

}  // namespace

TaskPrompts parse_task(std::string_view text, const std::string& source, const Tokenizer& tokenizer,
                       const FitOptions& options, std::size_t most) {
  require(text.size() <= kMostTaskBytes, "{}: {} are more than the {} a task file may have", source,
          human_bytes(text.size()), human_bytes(kMostTaskBytes));
  TaskPrompts result;
  result.task = source;
  result.corruption = "of the file";
  std::size_t number = 0;
  while (!text.empty() && result.prompts.size() < most) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    require(number <= kMostTaskLines, "{}: more than {} lines", source, kMostTaskLines);
    const PromptText pair = parse_line(line, fmt::format("{}, line {}", source, number));
    result.add(fit(pair, tokenizer, options), pair);
  }
  require(result.drawn > 0, "{}: there is no prompt in it", source);
  require_prompts(result);
  return result;
}

TaskPrompts read_task(const std::filesystem::path& file, const Tokenizer& tokenizer,
                      const FitOptions& options, std::size_t most) {
  const auto mapped = MappedFile::open(file);
  const auto bytes = mapped->bytes();
  return parse_task({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string(),
                    tokenizer, options, most);
}

}  // namespace filigree
