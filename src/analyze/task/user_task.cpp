#include "filigree/analyze/task/user_task.h"

#include <nlohmann/json.hpp>

#include "filigree/analyze/task/tasks.h"
#include "filigree/base/error.h"
#include "filigree/base/mapped_file.h"
#include "filigree/base/strings.h"
#include "filigree/json/lines.h"

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

PromptText prompt_of(const JsonObject& object) {
  for (const std::string& key : object.keys())
    require(key == "clean" || key == "corrupt" || key == "answer" || key == "wrong",
            "{}: unknown key '{}'; a line has clean, corrupt, answer, wrong", object.source(),
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
  JsonLimits limits;
  limits.max_bytes = kMostTaskLineBytes;
  JsonLines lines(text, source, LastLine::kWhole, limits);
  while (result.prompts.size() < most && lines.next()) {
    require(lines.number() <= kMostTaskLines, "{}: more than {} lines", source, kMostTaskLines);
    const PromptText pair = prompt_of(lines.object());
    result.add(fit(pair, tokenizer, options), pair);
  }
  require(result.drawn > 0, "{}: there is no prompt in it", source);
  require_prompts(result);
  return result;
}

TaskPrompts read_task(const std::filesystem::path& file, const Tokenizer& tokenizer,
                      const FitOptions& options, std::size_t most) {
  return parse_task(MappedFile::open(file)->text(), file.string(), tokenizer, options, most);
}

}  // namespace filigree
