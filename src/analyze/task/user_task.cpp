#include "analyze/task/user_task.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <set>
#include <tuple>

#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/tasks.h"
#include "json/lines.h"

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

// What a line says of the clean prompt: stretches of its text, and positions of its tokens.
struct LineRoles {
  std::vector<RoleSpan> spans;
  std::vector<std::pair<std::string, std::int64_t>> positions;
};

// Where `text` is in `clean` for the n-th time, from 1.
RoleSpan span_of(const std::string& role, const std::string& text, std::int64_t n,
                 const std::string& clean, const JsonObject& object) {
  std::size_t at = text.empty() || n < 1 ? std::string::npos : clean.find(text);
  for (std::int64_t i = 1; i < n && at != std::string::npos; ++i) at = clean.find(text, at + 1);
  require(at != std::string::npos, "{}: role '{}': '{}' is not {}in clean", object.source(),
          printable(role), printable(text), n == 1 ? "" : fmt::format("{} times ", n));
  return {role, at, at + text.size()};
}

LineRoles roles_in(const JsonObject& object, const std::string& clean) {
  LineRoles roles;
  const auto found = object.raw().find("roles");
  if (found == object.raw().end()) return roles;
  require(found->is_object() && found->size() <= kMostRoles,
          "{}: 'roles' is no object of at most {} roles", object.source(), kMostRoles);
  for (const auto& [role, place] : found->items()) {
    require(!role.empty() && role.size() <= kLongestRole && role != "START" && role != "END",
            "{}: '{}' is no name of a role: 1 to {} bytes, and START and END are the first and the "
            "last token",
            object.source(), printable(role), kLongestRole);
    if (place.is_string())
      roles.spans.push_back(span_of(role, place.get<std::string>(), 1, clean, object));
    else if (place.is_array() && place.size() == 2 && place[0].is_string() &&
             place[1].is_number_integer())
      roles.spans.push_back(
          span_of(role, place[0].get<std::string>(), place[1].get<std::int64_t>(), clean, object));
    else if (place.is_number_integer())
      roles.positions.emplace_back(role, place.get<std::int64_t>());
    else
      fail("{}: role '{}' is at a text, a text and which of its places, or a position",
           object.source(), printable(role));
  }
  return roles;
}

// Roles of single positions. The last one is END whatever else it is, as in the built-in tasks.
void add_roles(const LineRoles& roles, const FitOptions& options, const std::string& source,
               TaskPrompt& prompt) {
  const std::int64_t first = options.end_of_text_first ? 1 : 0, length = prompt.length() - first;
  for (const auto& [role, place] : roles.positions) {
    require(place >= -length && place < length,
            "{}: role '{}': there is no position {}; clean has {} tokens, 0 to {}", source,
            printable(role), place, length, length - 1);
    const auto at = static_cast<std::size_t>(first + (place < 0 ? place + length : place));
    if (at + 1 == prompt.roles.size()) continue;
    std::string& name = prompt.roles[at];
    name = name.empty() || name == "START" ? role : fmt::format("{}/{}", name, role);
  }
}

PromptText prompt_of(const JsonObject& object) {
  for (const std::string& key : object.keys())
    require(
        key == "clean" || key == "corrupt" || key == "answer" || key == "wrong" || key == "roles",
        "{}: unknown key '{}'; a line has clean, corrupt, answer, wrong, and may have roles",
        object.source(), printable(key));
  return {object.string("clean"), object.string("corrupt"), texts(object, "answer"),
          texts(object, "wrong")};
}

// Ids of a list, or one.
std::vector<TokenId> ids_in(const nlohmann::json& value, const JsonObject& object,
                            const char* key) {
  const nlohmann::json list = value.is_array() ? value : nlohmann::json::array({value});
  require(!list.empty() && list.size() <= kMostAnswers * kMostAnswers, "{}: '{}' has {} ids",
          object.source(), key, list.size());
  std::vector<TokenId> ids;
  for (const nlohmann::json& id : list) {
    require(id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                id.get<std::int64_t>() <= std::numeric_limits<TokenId>::max(),
            "{}: '{}' holds {}, which is no token id", object.source(), key,
            printable(id.dump(), 40));
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

bool is_of_ids(const JsonObject& object) {
  const auto clean = object.raw().find("clean");
  return clean != object.raw().end() && clean->is_array();
}

// A line of ids: a prompt for each of its positions, which have an entry each of answer and wrong.
std::vector<TaskPrompt> id_prompts_of(const JsonObject& object) {
  for (const std::string& key : object.keys())
    require(key == "clean" || key == "corrupt" || key == "answer" || key == "wrong" ||
                key == "position",
            "{}: unknown key '{}'; a line of ids has clean, corrupt, answer, wrong, and may have "
            "position",
            object.source(), printable(key));
  const nlohmann::json& raw = object.raw();
  for (const char* key : {"clean", "corrupt", "answer", "wrong"})
    require(raw.contains(key), "{}: '{}' is missing; a line has clean, corrupt, answer, wrong",
            object.source(), key);
  TaskPrompt whole;
  whole.clean = ids_in(raw["clean"], object, "clean");
  whole.corrupt = ids_in(raw["corrupt"], object, "corrupt");
  const bool several = raw.contains("position") && raw["position"].is_array();
  const nlohmann::json places = !raw.contains("position") ? nlohmann::json::array({-1})
                                : several                 ? raw["position"]
                                          : nlohmann::json::array({raw["position"]});
  require(!places.empty() && places.size() <= whole.clean.size(), "{}: {} positions of {} ids",
          object.source(), places.size(), whole.clean.size());
  std::vector<TaskPrompt> prompts;
  for (std::size_t p = 0; p < places.size(); ++p) {
    const std::int64_t length = whole.length();
    require(places[p].is_number_integer() && places[p].get<std::int64_t>() >= -length &&
                places[p].get<std::int64_t>() < length,
            "{}: there is no position {}; clean has {} ids", object.source(),
            printable(places[p].dump(), 40), length);
    TaskPrompt prompt = whole;
    const auto place = places[p].get<std::int64_t>();
    prompt.position = place < 0 ? place + length : place;
    const auto entry = [&](const char* key) {
      if (!several) return ids_in(raw[key], object, key);
      require(raw[key].is_array() && raw[key].size() == places.size(),
              "{}: '{}' needs an entry for each of {} positions", object.source(), key,
              places.size());
      return ids_in(raw[key][p], object, key);
    };
    prompt.answers = entry("answer"), prompt.wrong = entry("wrong");
    const auto listed = [](const std::vector<TokenId>& ids) {
      std::string text;
      for (const TokenId id : ids) text += fmt::format("{}{}", text.empty() ? "" : " ", id);
      return text;
    };
    prompt.text.clean = listed(prompt.clean), prompt.text.corrupt = listed(prompt.corrupt);
    prompt.text.answers = {listed(prompt.answers)}, prompt.text.wrong = {listed(prompt.wrong)};
    if (raw.contains("position")) prompt.text.clean += fmt::format(" at {}", prompt.position);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
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
  std::set<std::tuple<std::string, std::string, std::vector<std::string>, std::vector<std::string>>>
      seen;
  while (result.prompts.size() < most && lines.next()) {
    require(lines.number() <= kMostTaskLines, "{}: more than {} lines", source, kMostTaskLines);
    const JsonObject& object = lines.object();
    if (is_of_ids(object)) {
      for (TaskPrompt& prompt : id_prompts_of(object)) {
        if (result.prompts.size() == most) break;
        const PromptText own = prompt.text;
        if (!seen.insert({own.clean, own.corrupt, own.answers, own.wrong}).second)
          result.add({std::nullopt, DropReason::kRepeated}, own);
        else
          result.add(fit_ids(std::move(prompt), tokenizer, options), own);
      }
      continue;
    }
    PromptText pair = prompt_of(object);
    const LineRoles roles = roles_in(object, pair.clean);
    pair.roles = roles.spans;
    // A line that comes again is no further evidence: errors would shrink without a reason.
    if (!seen.insert({pair.clean, pair.corrupt, pair.answers, pair.wrong}).second) {
      result.add({std::nullopt, DropReason::kRepeated}, pair);
      continue;
    }
    Fit fitted = fit(pair, tokenizer, options);
    if (fitted.prompt) add_roles(roles, options, object.source(), *fitted.prompt);
    result.add(std::move(fitted), pair);
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
