#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {
namespace {

constexpr std::size_t kRows = 8, kWords = 5, kHeads = 3;
constexpr double kLeastShown = 0.1;  // weight

std::string quoted_for_figure(const HeadPage& page, TokenId id) {
  return "'" + printable(page.shown[id]) + "'";
}

// With a true minus sign.
std::string signed_number(double value) {
  return fmt::format("{}{:.2f}", value < 0 ? "\u2212" : "+", std::abs(value));
}

std::string fact_line(const HeadFacts& facts) {
  const std::string evidence = evidence_text(facts.role);
  return fmt::format("{} of {}: {}{}. OV score {}: {}.", head_name(facts.head), facts.label,
                     facts.role.name, evidence.empty() ? "" : " (" + evidence + ")",
                     signed_number(facts.circuit.copying), copying_text(facts.circuit.copying));
}

figure::HeadPageList edge_list(const HeadPage& page) {
  figure::HeadPageList list = {"Strongest edges: query \u2190 key", {}, {}};
  for (std::size_t i = 0; i < std::min(kRows, page.facts.edges.size()); ++i) {
    const TokenEdge& edge = page.facts.edges[i];
    list.left.push_back(quoted_for_figure(page, edge.query) + " \u2190 " +
                        quoted_for_figure(page, edge.key));
    list.right.push_back(fmt::format("{:.2f}, {} \u00d7", edge.mean, edge.count));
  }
  return list;
}

// What the last token of each task's prompts reads, where the prompts are the tasks' own.
figure::HeadPageList last_token_list(const HeadPage& page) {
  figure::HeadPageList list = {"The last token of tasks reads", {}, {}};
  std::size_t first = 0;
  for (const TaskEffect& task : page.facts.tasks) {
    if (task.last && task.last->weight >= kLeastShown) {
      const std::vector<std::string>& tokens = page.prompts[first + task.last->prompt].tokens;
      list.left.push_back(task.task);
      list.right.push_back(fmt::format(
          "'{}' \u2190 '{}' {:.2f}", printable(tokens[static_cast<std::size_t>(task.last->query)]),
          printable(tokens[static_cast<std::size_t>(task.last->key)]), task.last->weight));
    }
    first += task.prompts;
  }
  return list;
}

figure::HeadPageList word_list(const HeadPage& page, const std::string& heading,
                               const std::vector<LogitEffect>& effects) {
  figure::HeadPageList list = {heading, {}, {}};
  for (std::size_t i = 0; i < std::min(kWords, effects.size()); ++i) {
    list.left.push_back(quoted_for_figure(page, effects[i].token));
    list.right.push_back(signed_number(effects[i].effect));
  }
  return list;
}

figure::HeadPageList composition_list(const std::string& heading,
                                      const std::vector<ComposedHead> (&heads)[kCompositions]) {
  figure::HeadPageList list = {heading, {}, {}};
  for (std::size_t kind = 0; kind < kCompositions; ++kind) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kHeads, heads[kind].size()); ++i)
      text += fmt::format("{}{} {:.2f}", i == 0 ? "" : ", ", head_name(heads[kind][i].head),
                          heads[kind][i].score);
    list.left.emplace_back(1, "QKV"[kind]);
    list.right.push_back(text.empty() ? "\u2013" : text);
  }
  return list;
}

figure::HeadPageList own_list(const HeadPage& page) {
  figure::HeadPageList list = {"OV: own logit of what it reads", {}, {}};
  for (std::size_t i = 0; i < std::min(kWords, page.facts.reads.size()); ++i) {
    const WrittenForToken& read = page.facts.reads[i].written;
    list.left.push_back(quoted_for_figure(page, read.token));
    list.right.push_back(
        fmt::format("{}, rank {}", signed_number(read.own_effect),
                    with_thousands(static_cast<std::uint64_t>(read.own_rank + 1))));
  }
  return list;
}

// Dense is the first colour and sparse the second, everywhere; a twin has the other one.
std::size_t model_color(const HeadPage& page, bool twin) {
  const bool second = page.facts.label.starts_with("sparse") ||
                      (page.twin && page.twin->facts.label.starts_with("dense") &&
                       !page.facts.label.starts_with("dense"));
  return second != twin ? 1 : 0;
}

}  // namespace

figure::HeadPage figure_of(const HeadPage& page) {
  figure::HeadPage drawn;
  const HeadFacts& facts = page.facts;
  drawn.title = fmt::format("{} of {}", head_name(facts.head), facts.label);
  drawn.facts = {fact_line(facts)};
  if (page.twin)
    drawn.facts.push_back(fmt::format("Twin: {} Maps correlate {:.2f}.",
                                      fact_line(page.twin->facts), page.twin->correlation));
  drawn.tokens = page.prompts[page.example()].tokens;
  drawn.tokens.resize(page.prompts[page.example()].ids.size());
  drawn.maps.push_back({fmt::format("{} of {}", head_name(facts.head), facts.label), facts.map,
                        model_color(page, false)});
  if (page.twin)
    drawn.maps.push_back(
        {fmt::format("{} of {}", head_name(page.twin->facts.head), page.twin->facts.label),
         page.twin->facts.map, model_color(page, true)});
  drawn.bars_heading = "Tasks lose without it";
  for (std::size_t t = 0; t < facts.tasks.size(); ++t) {
    figure::HeadPageBar bar = {facts.tasks[t].task, {}, {}, !is_able(facts.tasks[t].check)};
    for (const HeadFacts* one : {&facts, page.twin ? &page.twin->facts : nullptr}) {
      if (one == nullptr) continue;
      const TaskEffect& task = one->tasks[t];
      const double whole = task.check.difference.mean;
      const bool able = is_able(task.check);
      bar.values.push_back(able ? task.share : 0.0);
      bar.errors.push_back(able && whole != 0 ? task.drop.error.value_or(0.0) / std::abs(whole)
                                              : 0.0);
    }
    drawn.bars.push_back(std::move(bar));
  }
  drawn.lists.push_back(edge_list(page));
  if (page.request.prompts.empty()) {
    drawn.lists.push_back(last_token_list(page));
    drawn.beside = 2;
  }
  if (facts.example) {
    drawn.lists.push_back(word_list(page, "Raises directly", facts.direct.raised));
    drawn.lists.push_back(word_list(page, "Lowers directly", facts.direct.lowered));
  }
  drawn.lists.push_back(own_list(page));
  drawn.lists.push_back(composition_list("Reads heads as its", facts.reads_heads));
  drawn.caption = fmt::format(
      "Maps: {}. Bars: share of the metric's difference between clean and corrupt prompts that is "
      "lost, with standard errors; the numbers are {}'s; in italics tasks that it cannot do.{}",
      !facts.example || facts.example->task.empty()
          ? std::string("the prompt of the strongest edge")
          : "a prompt of the task " + facts.example->task + ", which loses most",
      facts.label,
      facts.example
          ? fmt::format(" Raised and lowered: logits after '{}' of that prompt.",
                        printable(drawn.tokens[static_cast<std::size_t>(facts.example->query)]))
          : std::string());
  return drawn;
}

std::optional<std::string> counterpart(const std::string& model) {
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"dense-", "sparse-"},
                                 std::pair<std::string, std::string>{"sparse-", "dense-"}})
    if (model.starts_with(from)) {
      const std::string other = to + model.substr(from.size());
      if (find_named_model(model) && find_named_model(other)) return other;
    }
  return std::nullopt;
}

}  // namespace filigree::study
