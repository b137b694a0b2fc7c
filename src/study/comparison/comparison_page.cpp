#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/evaluation_study.h"
#include "filigree/names.h"
#include "study/comparison/comparison_output.h"

namespace filigree::study {
namespace {

constexpr std::size_t kMostPrompts = 8;
// Weights in a page: 24 MB before compression.
constexpr double kMostCells = 12e6;
constexpr std::int64_t kLeastTokens = 16;

ReportPairs pairs_of(const std::string& measure, const CorrelationMatrix& matrix,
                     const HeadPairs& pairs) {
  const std::size_t n = pairs.heads.size();
  ReportPairs result{measure};
  result.order = pairs.clustering.order;
  for (std::size_t a = 0; a < n; ++a)
    result.matrix.emplace_back(matrix.begin() + static_cast<std::ptrdiff_t>(a * n),
                               matrix.begin() + static_cast<std::ptrdiff_t>((a + 1) * n));
  // A head that never varies correlates with nothing: shown as undefined.
  for (const std::size_t slot : pairs.constant)
    for (std::size_t other = 0; other < n; ++other)
      result.matrix[slot][other] = result.matrix[other][slot] =
          std::numeric_limits<double>::quiet_NaN();
  return result;
}

// "20 of 144; keys per query of those: median 1.17, largest 39.9 (L9H6)".
std::string living_text(const LivingHeads& living) {
  return fmt::format("{}; keys per query of those: {}", count_text(living), keys_text(living));
}

// "+0.015 ± 0.024".
std::string with_error(double value, const std::optional<double>& error, bool sign) {
  return (sign ? fmt::format("{:+.3f}", value) : fmt::format("{:.3f}", value)) +
         (error ? fmt::format(" \u00b1 {:.3f}", *error) : "");
}

NamedTexts facts_of(const ComparisonResult& result, std::size_t m) {
  const AnalysedModel& model = result.models[m];
  const HeadGroup& whole = model.statistics->groups().front();
  NamedTexts facts = {
      {"parameters", with_thousands(static_cast<std::uint64_t>(model.parameters))},
      {"active edges of the prompts",
       fmt::format("{:.3g} %", 100.0 * model.statistics->mean(whole, Statistic::kActiveEdges))},
      {"keys per query",
       fmt::format("{:.3g}", model.statistics->mean(whole, Statistic::kKeysPerQuery))},
      {"living heads", living_text(model.statistics->living_heads())}};
  // Edges and keys of the prompts are there already; those are shorter.
  for (const TextLosses& text : result.held_out) {
    const Evaluation& evaluation = text.models[m].evaluation;
    const Connectivity open = evaluation.connectivity();
    facts.emplace_back(
        "held-out " + text.text,
        fmt::format("loss {}, {} of the edges active, {:.3g} keys per query; living heads: {}",
                    with_error(evaluation.loss(), evaluation.loss_error(), false),
                    percent(open.active_edges), open.keys_per_query,
                    living_text(evaluation.living())));
  }
  return facts;
}

ReportModel model_of(const ComparisonResult& result, std::size_t m, const ModelConfig& config) {
  const AnalysedModel& analysed = result.models[m];
  const AttentionStatistics& statistics = *analysed.statistics;
  ReportModel model;
  model.name = analysed.label;
  model.layers = config.layers, model.heads = config.heads;
  model.facts = facts_of(result, m);
  for (const HeadRole& role : analysed.roles)
    model.by_head.push_back({role.name, role.confidence, {}});
  for (const HeadGroup& group : statistics.groups())
    if (group.scope == HeadGroup::Scope::kHead)
      for (std::size_t s = 0; s < kStatistics; ++s) {
        const auto statistic = static_cast<Statistic>(s);
        const double mean = statistics.mean(group, statistic);
        if (std::isfinite(mean))
          model.by_head[group.first].statistics.emplace(name_of(statistic), mean);
      }
  model.pairs = {pairs_of("Pearson", analysed.pairs->pearson, *analysed.pairs),
                 pairs_of("Spearman", analysed.pairs->spearman, *analysed.pairs)};
  return model;
}

ReportStatistic statistic_of(const ComparedStatistic& row) {
  // Rows of other heads and rows have a key of their own, under which heads have no value.
  ReportStatistic statistic{std::string(name_of(row.statistic)), heading_of(row.statistic)};
  if (row.over != Over::kAll) {
    statistic.name += fmt::format(":{}", name_of(row.over));
    statistic.over = std::string(heading_of(row.over));
  }
  if (is_share(row.statistic)) statistic.unit = "%";
  statistic.values = {row.first, row.second};
  for (std::size_t m = 0; m < 2; ++m) {
    const figure::Estimate estimate = mean_with_interval(row, m);
    statistic.intervals.push_back(estimate.low < estimate.high
                                      ? std::optional(std::array{estimate.low, estimate.high})
                                      : std::nullopt);
  }
  statistic.change = row.change;
  if (row.interval) statistic.low = row.interval->low, statistic.high = row.interval->high;
  statistic.p = row.p, statistic.least_p = row.least_p;
  return statistic;
}

// "26 x fewer attention edges explain 90 % of ioi: 374, not 9,888"; of the first task in which both
// models have a circuit.
std::optional<std::pair<std::string, std::string>> circuit_number(const ComparisonResult& result) {
  for (const TaskCircuits& task : result.tasks) {
    const CircuitsOfKind* cells = task.find(Parts::kAttentionEdges);
    if (cells == nullptr) continue;
    const std::optional<double> ratio = size_ratio((*cells)[0], (*cells)[1]);
    if (!ratio) continue;
    const bool fewer = *ratio >= 1;
    const double times = fewer ? *ratio : 1 / *ratio;
    return std::pair(
        fmt::format("{:.{}f} \u00d7", times, times < 9.95 ? 1 : 0),
        fmt::format("{} attention edges for {:g} % of {}: {}, not {}", fewer ? "fewer" : "more",
                    100 * (*cells)[0].options.level, task_title(task.task()),
                    with_thousands(*(*cells)[1].size()), with_thousands(*(*cells)[0].size())));
  }
  return std::nullopt;
}

// Of the text that both were measured on where there is one, else of the prompts.
ReportStory story_of(const ComparisonResult& result) {
  const std::string &dense = result.models[0].label, &sparse = result.models[1].label;
  ReportStory story;
  if (!result.held_out.empty()) {
    const TextLosses& text = result.held_out[0];
    const Evaluation &a = text.models[0].evaluation, &b = text.models[1].evaluation;
    const Connectivity open = b.connectivity(), before = a.connectivity();
    const double change = b.loss() - a.loss();
    story.line = fmt::format(
        "{} reads {} through {} of {}'s attention edges, in {} heads, at a loss of {} nats against "
        "{}.",
        sparse, text.text, percent(open.active_edges / before.active_edges), dense,
        count_text(b.living()), with_error(b.loss(), b.loss_error(), false),
        with_error(a.loss(), a.loss_error(), false));
    story.numbers = {
        {percent(open.active_edges), fmt::format("of the attention edges open on {} ({}: {})",
                                                 text.text, dense, percent(before.active_edges))},
        {count_text(b.living()),
         fmt::format("heads that ever open on {}; keys per query of those: {}", text.text,
                     keys_text(b.living()))},
        {with_error(change, change_error(b, a), true),
         fmt::format("nats of loss on {} tokens of {}, with one standard error",
                     with_thousands(static_cast<std::uint64_t>(b.total.tokens)), text.text)}};
  } else {
    const auto number = [&](Statistic statistic, std::size_t m) {
      const AttentionStatistics& statistics = *result.models[m].statistics;
      return statistics.mean(statistics.groups().front(), statistic);
    };
    const auto both = [&](Statistic statistic, const std::string& what) {
      const auto text = [&](double value) {
        return is_share(statistic) ? percent(value) : fmt::format("{:.3g}", value);
      };
      story.numbers.emplace_back(
          text(number(statistic, 1)),
          fmt::format("{} ({}: {})", what, dense, text(number(statistic, 0))));
    };
    story.line = fmt::format(
        "{} looks at the same prompts through {} of the attention edges, {} "
        "through {}.",
        sparse, percent(number(Statistic::kActiveEdges, 1)), dense,
        percent(number(Statistic::kActiveEdges, 0)));
    both(Statistic::kActiveEdges, "of the attention edges of the prompts open");
    const LivingHeads living = result.models[1].statistics->living_heads();
    story.numbers.emplace_back(count_text(living),
                               fmt::format("heads that ever open on the prompts; keys per query of "
                                           "those: {}",
                                           keys_text(living)));
    both(Statistic::kEmptyRows, "of the rows look nowhere");
  }
  if (const auto circuit = circuit_number(result))
    story.numbers.push_back(*circuit);
  else if (result.held_out.size() > 1)
    story.numbers.emplace_back(with_error(result.held_out[1].models[1].evaluation.loss() -
                                              result.held_out[1].models[0].evaluation.loss(),
                                          change_error(result.held_out[1].models[1].evaluation,
                                                       result.held_out[1].models[0].evaluation),
                                          true),
                               fmt::format("nats of loss on {}", result.held_out[1].text));
  return story;
}

}  // namespace

PageMaps::PageMaps(std::size_t models, std::size_t heads, const std::vector<Prompt>& prompts)
    : heads_(heads), prompts_(std::min(kMostPrompts, prompts.size())), packed_(models) {
  const auto maps = static_cast<double>(models * heads * prompts_);
  tokens_ = std::max(kLeastTokens, static_cast<std::int64_t>(std::sqrt(2.0 * kMostCells / maps)));
}

void PageMaps::add(std::size_t model, std::span<const HeadMap> maps) {
  for (const HeadMap& map : maps) {
    if (map.prompt >= prompts_) return;
    if (!current_) current_ = std::make_unique<PackedMaps>();
    const std::int64_t n = std::min(map.length, tokens_);
    square_.resize(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(map.weights.begin() + i * map.length, n, square_.begin() + i * n);
    current_->add(square_, n);
    if (++seen_ == heads_) {
      packed_[model].push_back(current_->finish());
      current_.reset();
      seen_ = 0;
    }
  }
}

Report make_page(const std::string& title, const ComparisonResult& result, Models models,
                 const PageMaps& maps) {
  Report report;
  report.title = title;
  report.story = story_of(result);
  report.roles = names_of<Pattern>();
  for (std::size_t m = 0; m < models.size(); ++m)
    report.models.push_back(model_of(result, m, models[m].config()));
  for (std::size_t p = 0; p < maps.prompts(); ++p) {
    ReportPrompt prompt;
    prompt.tokens = result.prompts[p].tokens;
    if (static_cast<std::int64_t>(prompt.tokens.size()) > maps.tokens())
      prompt.tokens.resize(static_cast<std::size_t>(maps.tokens()));
    prompt.text = fmt::format("{}", fmt::join(prompt.tokens, ""));
    for (std::size_t m = 0; m < models.size(); ++m) prompt.maps.push_back(maps.packed(m, p));
    report.prompts.push_back(std::move(prompt));
  }
  for (const ComparedStatistic& row : result.comparison)
    if (row.group.scope == HeadGroup::Scope::kModel) report.statistics.push_back(statistic_of(row));
  return report;
}

}  // namespace filigree::study
