// Docstring arguments: the documentation of a function names its arguments in order.
//
//   def load(self, size, path, mode):
//       """Load the table.
//
//       :param size: stone river
//       :param path: ...
//
// Held out: lists of arguments.
#include "filigree/data.h"
#include "filigree/names.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

constexpr std::string_view kArguments[] = {
    "size",    "path",    "mode",   "name",   "value",  "index",  "count", "width",  "height",
    "depth",   "color",   "label",  "title",  "text",   "date",   "time",  "user",   "host",
    "port",    "file",    "line",   "page",   "row",    "column", "key",   "item",   "list",
    "node",    "parent",  "child",  "start",  "stop",   "step",   "limit", "offset", "length",
    "rate",    "speed",   "scale",  "angle",  "shape",  "style",  "theme", "format", "source",
    "target",  "input",   "output", "buffer", "stream", "cache",  "queue", "stack",  "table",
    "field",   "record",  "query",  "filter", "order",  "group",  "level", "state",  "status",
    "error",   "message", "token",  "code",   "url",    "header", "body",  "method", "timeout",
    "retries", "version", "image",  "frame",  "pixel",  "layer",  "mask",  "weight", "bias",
    "alpha",   "beta",    "gamma",  "seed",   "batch",  "epoch",  "model", "data",   "schema",
    "region",  "zone",    "owner",  "role",   "price",  "total"};

constexpr std::string_view kVerbs[] = {
    "load",   "save",  "send",   "build",  "parse",  "open",    "draw",   "merge",  "split",
    "copy",   "move",  "find",   "sort",   "print",  "check",   "update", "create", "delete",
    "render", "fetch", "encode", "decode", "export", "import_", "scan",   "plot"};

constexpr std::string_view kObjects[] = {"file",   "table", "image",   "report",  "graph",  "index",
                                         "list",   "page",  "record",  "packet",  "matrix", "model",
                                         "window", "chart", "session", "archive", "config", "tree"};

// How a style writes the head, each argument before the answer, the answer's line, and the end.
// {args} is the list of arguments as the signature has it.
struct Style {
  std::string_view head;
  std::string_view argument;  // {arg} is set apart, as the answer
  std::string_view tail;
};

constexpr Style kStyles[] = {
    {"def {verb}_{object}(self, {args}):\n    \"\"\"{^verb} the {object}.\n\n",
     "    :param[ {arg}]: {note}\n", "    \"\"\""},
    {"def {verb}_{object}({args}):\n    \"\"\"{^verb} {a object}.\n\n",
     "    :param[ {arg}]: {note}\n", "    \"\"\""},
    {"def {verb}({args}):\n    \"\"\"{^verb} the {object}.\n\n    Args:\n",
     "       [ {arg}]: {note}\n", "    \"\"\""},
    {"def {verb}_{object}(self, {args}):\n    \"\"\"{^verb} the {object} with these arguments:\n\n",
     "    @param[ {arg}] {note}\n", "    \"\"\""},
    {"/**\n * function {verb}({args})\n * {^verb} the {object}.\n", " * @param[ {arg}] {note}\n",
     " */"},
    {"// {verb}_{object}({args})\n// {^verb} {a object}.\n", "// \\param[ {arg}] {note}\n", "//"},
    {"The function {verb}({args}) takes these arguments.\n", "-[ {arg}]: {note}\n", "That is all."},
    {"Usage: {verb}-{object} ({args})\n", "  *[ {arg}] ({note})\n", "End of usage."},
};

std::string note(Random& random) {
  const std::vector<std::string> words =
      pick_several(random, plain_words(), static_cast<std::size_t>(pick_number(random, 1, 3)));
  return join(words, " ");
}

}  // namespace

TaskExample draw_docstring(Random& random) {
  const std::vector<std::string> arguments =
      pick_several(random, kArguments, static_cast<std::size_t>(pick_number(random, 3, 6)));
  const Style& style = pick(random, kStyles);
  const auto asked = random.below(arguments.size());
  const std::string all = join(arguments, ", ");
  std::string before = fill(style.head, {{"verb", std::string(pick(random, kVerbs))},
                                         {"object", std::string(pick(random, kObjects))},
                                         {"args", all}});
  TaskExample example;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const TaskExample line =
        compose(style.argument, {{"arg", arguments[i]}, {"note", note(random)}});
    if (i == asked) {
      example.prompt = before + line.prompt;
      example.answer = line.answer;
    } else {
      example.wrong.push_back(line.answer);
    }
    before += line.text;
  }
  example.text = before + std::string(style.tail);
  example.combination = all;
  return example;
}

TaskPair pair_docstring(Random& random, ArgumentChange change) {
  const std::vector<std::string> arguments =
      pick_several(random, kArguments, static_cast<std::size_t>(pick_number(random, 3, 6)));
  const Style& style = pick(random, kStyles);
  const std::string verb(pick(random, kVerbs)), object(pick(random, kObjects));
  const auto asked = static_cast<std::size_t>(random.below(arguments.size()));
  std::vector<std::string> signature = arguments;
  const auto replace = [&](std::size_t i) {
    std::vector<std::string> taken = arguments;
    taken.insert(taken.end(), signature.begin(), signature.end());
    signature[i] = pick_other(random, kArguments, taken);
  };
  if (change == ArgumentChange::kOneArgument) {
    replace(asked);
  } else {
    for (std::size_t i = 0; i < arguments.size(); ++i) replace(i);
  }
  std::string lines;  // what is documented before the answer, the same in both
  std::pair<std::size_t, std::size_t> before_last;  // its last argument
  for (std::size_t i = 0; i < asked; ++i) {
    const TaskExample documented =
        compose(style.argument, {{"arg", arguments[i]}, {"note", note(random)}});
    before_last.second = lines.size() + documented.prompt.size() + documented.answer.size();
    before_last.first = before_last.second - arguments[i].size();
    lines += documented.text;
  }
  const TaskExample line =
      compose(style.argument, {{"arg", arguments[asked]}, {"note", note(random)}});
  const auto head = [&](const std::vector<std::string>& list) {
    return fill(style.head, {{"verb", verb}, {"object", object}, {"args", join(list, ", ")}});
  };
  const std::string lead = line.answer.starts_with(' ') ? " " : "";
  // Where the signature and the documentation have the argument before the one asked for, and the
  // signature that one.
  std::vector<RoleSpan> roles;
  std::size_t begin =
      roles_in(style.head, {{"verb", verb}, {"object", object}, {"args", ""}}, {{"args", ""}})[0]
          .begin;
  for (std::size_t i = 0; i <= asked; ++i) {
    if (i + 1 >= asked)
      roles.push_back({i == asked ? "C_def" : "B_def", begin, begin + arguments[i].size()});
    begin += arguments[i].size() + 2;
  }
  if (asked > 0)
    roles.push_back({"B_doc", head(arguments).size() + before_last.first,
                     head(arguments).size() + before_last.second});
  TaskPair pair;
  pair.clean.prompt = head(arguments) + lines + line.prompt;
  pair.clean.answer = line.answer;
  pair.clean.text = head(arguments) + lines + line.text + std::string(style.tail);
  if (change == ArgumentChange::kOneArgument) {
    pair.clean.wrong = {lead + signature[asked]};
  } else {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (i != asked) pair.clean.wrong.push_back(lead + arguments[i]);
  }
  pair.clean.combination = join(arguments, ", ");
  pair.clean.roles = roles;
  pair.corrupt = head(signature) + lines + line.prompt;
  return pair;
}

}  // namespace filigree::corpus
