
#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

constexpr std::size_t kHeadsListed = 4;

class HeadText {
 public:
  explicit HeadText(const HeadPage& page) : page_(page), facts_(page.facts) {}

  std::string text() const {
    return heading() + edges() + output() + weights() + matches() + composition() + tasks() +
           twin();
  }

 private:
  std::string quoted(TokenId id) const { return "'" + printable(page_.shown[id]) + "'"; }

  // Of the tokens that it does read, which may be few of the vocabulary.
  static std::string reads_text(const HeadFacts& facts) {
    if (facts.reads.empty()) return "";
    return fmt::format(
        "; of what it reads here {} is among the 5 tokens that it raises most, {} "
        "among the 5 that it lowers most",
        percent(facts.copied_share), percent(facts.suppressed_share));
  }

  static std::string summary(const HeadFacts& facts) {
    const std::string evidence = evidence_text(facts.role);
    return fmt::format(
        "  role      {}{}\n  attends   in {} of {} rows ({}), mean mass of a row {:.3f}\n"
        "  copying   {:+.3f}: {}{}\n  matching  {:+.3f}: {}\n  by        {}\n",
        facts.role.name, evidence.empty() ? "" : " (" + evidence + ")",
        with_thousands(static_cast<std::uint64_t>(facts.open_rows)),
        with_thousands(static_cast<std::uint64_t>(facts.rows)),
        percent(static_cast<double>(facts.open_rows) /
                static_cast<double>(std::max<std::int64_t>(facts.rows, 1))),
        facts.mean_mass, facts.circuit.copying, copying_text(facts.circuit.copying),
        reads_text(facts), facts.circuit.matching,
        facts.circuit.matching >= 0 ? "its queries look for tokens like themselves"
                                    : "its queries look away from tokens like themselves",
        description_of(facts.input));
  }

  std::string heading() const {
    const std::size_t tasks = facts_.tasks.size();
    return fmt::format("{} of {}, on {}{}\n{}", head_name(facts_.head), printable(facts_.label),
                       counted(page_.prompts.size(), "prompt"),
                       page_.request.prompts.empty() ? " of " + counted(tasks, "task") : "",
                       summary(facts_));
  }

  std::string edges() const {
    if (facts_.edges.empty()) return "\nno edges: it attends to nothing on these prompts\n";
    Table table({{"query"},
                 {"<- key"},
                 {"weight", Align::kRight},
                 {"times", Align::kRight},
                 {"of its attention", Align::kRight}});
    for (const TokenEdge& edge : facts_.edges)
      table.add({quoted(edge.query), quoted(edge.key), fmt::format("{:.2f}", edge.mean),
                 std::to_string(edge.count), percent(edge.share)});
    return "\nstrongest edges\n" + table.text(2);
  }

  std::string output() const {
    if (!facts_.example) return "";
    Table table({{"raises"}, {"by", Align::kRight}, {"   lowers"}, {"by", Align::kRight}});
    const DirectEffect& direct = facts_.direct;
    for (std::size_t i = 0; i < direct.raised.size(); ++i)
      table.add({quoted(direct.raised[i].token), fmt::format("{:+.2f}", direct.raised[i].effect),
                 "   " + quoted(direct.lowered[i].token),
                 fmt::format("{:+.2f}", direct.lowered[i].effect)});
    const HeadExample& example = *facts_.example;
    const std::vector<std::string>& tokens = page_.prompts[example.prompt].tokens;
    const auto at = [&](std::int64_t place) {
      return "'" + printable(tokens[static_cast<std::size_t>(place)]) + "'";
    };
    std::string prompt;
    for (const std::string& token : tokens) prompt += token;
    return fmt::format(
               "\nfor example, {}\"{}\":\n{} reads {} with weight {:.2f}, and the head's direct "
               "effect on the next token's logits is\n",
               example.task.empty() ? "" : "of the task " + example.task + ", ",
               printable(prompt, 160), at(example.query), at(example.key), example.weight) +
           table.text(2);
  }

  std::string weights() const {
    std::string text;
    if (!facts_.reads.empty()) {
      Table table({{"reads"},
                   {"of its attention", Align::kRight},
                   {"own logit", Align::kRight},
                   {"rank", Align::kRight},
                   {"raises most"},
                   {"lowers most"}});
      for (const ReadToken& read : facts_.reads)
        table.add({quoted(read.written.token), percent(read.share),
                   fmt::format("{:+.2f}", read.written.own_effect),
                   with_thousands(static_cast<std::uint64_t>(read.written.own_rank + 1)),
                   quoted(read.written.raised), quoted(read.written.lowered)});
      text += fmt::format("\nOV by weights ({}): what it writes for the tokens that it reads\n",
                          description_of(facts_.input)) +
              table.text(2);
    }
    Table table({{"reads"},
                 {"raises"},
                 {"by", Align::kRight},
                 {"   reads"},
                 {"lowers"},
                 {"by", Align::kRight}});
    for (std::size_t i = 0; i < std::min(facts_.raises.size(), facts_.lowers.size()); ++i)
      table.add({quoted(facts_.raises[i].from), quoted(facts_.raises[i].to),
                 fmt::format("{:+.2f}", facts_.raises[i].score),
                 "   " + quoted(facts_.lowers[i].from), quoted(facts_.lowers[i].to),
                 fmt::format("{:+.2f}", facts_.lowers[i].score)});
    return text + "\nOV by weights: the extremes of all tokens\n" + table.text(2);
  }

  std::string partners(const MatchedToken& matched) const {
    std::string text;
    for (const TokenPair& pair : matched.partners)
      text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", quoted(pair.to), pair.score);
    return text;
  }

  std::string matches() const {
    if (facts_.queries.empty()) return "";
    Table table({{"query"}, {"looks for"}, {"   key"}, {"is found by"}});
    for (std::size_t i = 0; i < std::max(facts_.queries.size(), facts_.keys.size()); ++i) {
      std::vector<std::string> row(4);
      if (i < facts_.queries.size())
        row[0] = quoted(facts_.queries[i].token), row[1] = partners(facts_.queries[i]);
      if (i < facts_.keys.size())
        row[2] = "   " + quoted(facts_.keys[i].token), row[3] = partners(facts_.keys[i]);
      table.add(std::move(row));
    }
    return "\nQK by weights: the best matches of the tokens that it attends from and to\n" +
           table.text(2);
  }

  static std::string heads_text(const std::vector<ComposedHead>& heads) {
    std::string text;
    for (std::size_t i = 0; i < std::min(heads.size(), kHeadsListed); ++i)
      text +=
          fmt::format("{}{} {:.2f}", i == 0 ? "" : ", ", head_name(heads[i].head), heads[i].score);
    return text.empty() ? "-" : text;
  }

  std::string composition() const {
    Table table({{""}, {"reads"}, {"is read by"}});
    for (std::size_t kind = 0; kind < kCompositions; ++kind)
      table.add({std::string(1, "QKV"[kind]), heads_text(facts_.reads_heads[kind]),
                 heads_text(facts_.read_by[kind])});
    return fmt::format("\ncomposition by weights (random matrices {:.2f})\n",
                       facts_.random_composition) +
           table.text(2);
  }

  static std::string effect(const Estimate& value) {
    std::string text = fmt::format("{:+.3f}", value.mean);
    if (value.error) text += fmt::format(" +- {:.3f}", *value.error);
    return text;
  }

  // "' to' <- ' Mary' 1.00" of the strongest one in a task; the prompts are the tasks' unless
  // others were given.
  std::string last_edge(std::size_t number) const {
    const TaskEffect& task = facts_.tasks[number];
    if (!task.last || task.last->weight < 0.005 || !page_.request.prompts.empty()) return "-";
    std::size_t first = 0;
    for (std::size_t t = 0; t < number; ++t) first += facts_.tasks[t].prompts;
    const std::vector<std::string>& tokens = page_.prompts[first + task.last->prompt].tokens;
    return fmt::format(
        "'{}' <- '{}' {:.2f}", printable(tokens[static_cast<std::size_t>(task.last->query)]),
        printable(tokens[static_cast<std::size_t>(task.last->key)]), task.last->weight);
  }

  std::string tasks() const {
    if (facts_.tasks.empty()) return "";
    std::vector<Table::Column> columns = {{"task"},
                                          {"attends", Align::kRight},
                                          {"last token"},
                                          {"clean", Align::kRight},
                                          {"without it", Align::kRight},
                                          {"drop", Align::kRight},
                                          {"of the effect", Align::kRight},
                                          {"direct effect", Align::kRight},
                                          {"rank", Align::kRight}};
    if (page_.twin) columns.push_back({"twin's drop", Align::kRight});
    Table table(columns);
    bool unable = false;
    for (std::size_t t = 0; t < facts_.tasks.size(); ++t) {
      const TaskEffect& task = facts_.tasks[t];
      const bool able = is_able(task.check);
      unable = unable || !able;
      std::vector<std::string> row = {task.task + (able ? "" : " *"),
                                      percent(task.open_rows),
                                      last_edge(t),
                                      fmt::format("{:.3f}", task.check.clean.mean),
                                      fmt::format("{:.3f}", task.ablated.mean),
                                      effect(task.drop),
                                      able ? fmt::format("{:+.1f} %", 100 * task.share) : "-",
                                      effect(task.direct),
                                      std::to_string(task.direct_rank + 1)};
      if (page_.twin) row.push_back(effect(page_.twin->facts.tasks[t].drop));
      table.add(std::move(row));
    }
    std::string text =
        fmt::format(
            "\ntasks, {} in its place; direct effects on the logit difference, with their "
            "rank among the heads\n",
            page_.request.replacement == Replacement::kCorrupt
                ? "its value on the corrupt prompt"
                : std::string(name_of(page_.request.replacement))) +
        table.text(2);
    if (unable)
      text += "  * not better than chance, or the corruption does nothing: no effect to share\n";
    if (!page_.skipped_tasks.empty())
      text += fmt::format("  no prompts for this tokenizer: {}\n", join(page_.skipped_tasks, ", "));
    return text;
  }

  std::string twin() const {
    if (!page_.twin) return "";
    const HeadTwin& twin = *page_.twin;
    const bool same = twin.facts.head == facts_.head;
    return fmt::format(
        "\ntwin in {}: {}, whose maps correlate {:.2f}{}\n{}", printable(twin.facts.label),
        head_name(twin.facts.head), twin.correlation,
        same ? " (the same place)"
        : twin.same_correlation
            ? fmt::format("; {} there {:.2f}", head_name(facts_.head), *twin.same_correlation)
            : std::string(),
        summary(twin.facts));
  }

  const HeadPage& page_;
  const HeadFacts& facts_;
};

}  // namespace

std::string text_of(const HeadPage& page) { return HeadText(page).text(); }

}  // namespace filigree::study
