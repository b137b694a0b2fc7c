// Many prompts through a model: activations of all their positions as tables, and what follows
// each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include "analyze/next_token.h"
#include "base/table.h"
#include "filigree/error.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "filigree/version.h"
#include "study/not_finite.h"
#include "study/run/activation_files.h"

namespace filigree::study {
namespace {

// What is kept of a run before it is written, and the logits of one pass.
constexpr std::int64_t kBytesAtOnce = 128 << 20, kMostTokensAtOnce = 4096;

// The prompts of one pass by their numbers, the longest first.
using Pass = std::vector<std::size_t>;

class ActivationRuns {
 public:
  ActivationRuns(const ActivationsRequest& request, const LoadedModel& model,
                 const std::vector<Prompt>& prompts)
      : request_(request), model_(model), prompts_(prompts) {
    for (const std::string& glob : request.taps) {
      if (glob == kLogitsTap) {
        logits_ = true;
        continue;
      }
      for (const std::string& name : matching_taps(model.model(), glob))
        if (std::ranges::find(taps_, name) == taps_.end()) taps_.push_back(name);
    }
    for (const std::string& name : taps_)
      if (name.ends_with(".hook_pattern") || name.ends_with(".hook_attn_scores") ||
          name.ends_with(".hook_gate"))
        throw RequestError(fmt::format(
            "'{}' has a map of each prompt's positions by its positions, which is no row of a "
            "table; write maps with 'attention --out'",
            name));
    const std::size_t runs = request.interventions.empty() ? 1 : 2;
    for (std::size_t run = 0; run < runs; ++run) {
      for (const std::string& name : taps_) names_.push_back(kRuns[run] + name);
      if (logits_) names_.push_back(kRuns[run] + std::string(kLogitsTap));
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  // The prompts [begin, end), whose rows rows() gives then.
  void run(std::size_t begin, std::size_t end, std::vector<PromptOutcome>& outcomes) {
    begin_ = begin, end_ = end;
    rows_.assign(names_.size(), std::vector<Tensor>(end - begin));
    for (const Pass& pass : passes_of(begin, end)) run_pass(pass, outcomes);
  }

  std::vector<ActivationTable> rows() const {
    std::vector<ActivationTable> tables;
    for (std::size_t t = 0; t < names_.size(); ++t)
      tables.push_back({names_[t], together(rows_[t])});
    std::vector<std::int32_t> ids, prompt, position;
    for (std::size_t p = begin_; p < end_; ++p)
      for (std::size_t i = 0; i < prompts_[p].ids.size(); ++i) {
        ids.push_back(prompts_[p].ids[i]);
        prompt.push_back(static_cast<std::int32_t>(p));
        position.push_back(static_cast<std::int32_t>(i));
      }
    const auto count = static_cast<std::int64_t>(ids.size());
    tables.push_back({"ids", Tensor::from_ids({count}, ids)});
    tables.push_back({"prompt", Tensor::from_ids({count}, prompt)});
    tables.push_back({"position", Tensor::from_ids({count}, position)});
    return tables;
  }

 private:
  static constexpr const char* kRuns[] = {"plain.", "changed."};

  // The longest first, so that little padding is needed. Padding behind a prompt changes nothing
  // where attention is causal and the rotary angles are those of the prompt's own length.
  std::vector<Pass> passes_of(std::size_t begin, std::size_t end) const {
    std::vector<std::size_t> order;
    for (std::size_t p = begin; p < end; ++p) order.push_back(p);
    const auto length = [&](std::size_t p) { return prompts_[p].ids.size(); };
    std::ranges::stable_sort(order, std::greater<>(), length);
    const ModelConfig& config = model_.config();
    const auto can_pad = [&](std::size_t longest, std::size_t own) {
      return own == longest ||
             (!config.bidirectional && config.same_angles(static_cast<std::int64_t>(longest),
                                                          static_cast<std::int64_t>(own)));
    };
    std::vector<Pass> passes;
    for (const std::size_t p : order) {
      const std::size_t longest = passes.empty() ? 0 : length(passes.back()[0]);
      const bool joins =
          request_.interventions.empty() && !passes.empty() && can_pad(longest, length(p)) &&
          static_cast<std::int64_t>((passes.back().size() + 1) * longest) <= tokens_a_pass();
      if (!joins) passes.emplace_back();
      passes.back().push_back(p);
    }
    return passes;
  }

  std::int64_t tokens_a_pass() const {
    const std::int64_t of_logits =
        kBytesAtOnce / (model_.config().outputs() * static_cast<std::int64_t>(sizeof(float)));
    return std::clamp<std::int64_t>(of_logits, 1, kMostTokensAtOnce);
  }

  // Keeps the rows of each prompt of a pass, [B, T, ...] -> [its length, ...].
  void keep_rows(std::vector<Tensor>& rows, const Pass& pass, const Tensor& value,
                 const std::string& name) const {
    const auto B = static_cast<std::int64_t>(pass.size()),
               T = static_cast<std::int64_t>(prompts_[pass[0]].ids.size());
    require(value.shape().rank() >= 2 && value.size(0) == B && value.size(1) == T,
            "'{}' is {} in a run of {} x {} tokens, and has no row for each position", name,
            value.shape().to_string(), B, T);
    std::vector<std::int64_t> extents = {0};
    for (int axis = 2; axis < value.shape().rank(); ++axis) extents.push_back(value.size(axis));
    if (extents.size() == 1) extents.push_back(1);
    const std::int64_t row = value.elements() / (B * T);
    for (std::int64_t b = 0; b < B; ++b) {
      const std::size_t p = pass[static_cast<std::size_t>(b)];
      extents[0] = static_cast<std::int64_t>(prompts_[p].ids.size());
      Tensor own = Tensor::empty(Shape(extents));
      std::copy_n(value.f32() + b * T * row, extents[0] * row, own.mutable_f32());
      rows[p - begin_] = std::move(own);
    }
  }

  static Tensor together(const std::vector<Tensor>& parts) {
    std::int64_t rows = 0;
    for (const Tensor& part : parts) rows += part.size(0);
    std::vector<std::int64_t> extents(parts[0].shape().extents().begin(),
                                      parts[0].shape().extents().end());
    extents[0] = rows;
    Tensor whole = Tensor::empty(Shape(extents));
    float* to = whole.mutable_f32();
    for (const Tensor& part : parts) to = std::copy_n(part.f32(), part.elements(), to);
    return whole;
  }

  void run_pass(const Pass& pass, std::vector<PromptOutcome>& outcomes) {
    const std::size_t runs = request_.interventions.empty() ? 1 : 2;
    const std::vector<TokenId>& first = prompts_[pass[0]].ids;
    const auto B = static_cast<std::int64_t>(pass.size()),
               T = static_cast<std::int64_t>(first.size());
    std::vector<TokenId> ids;
    for (const std::size_t p : pass) {
      const std::vector<TokenId>& own = prompts_[p].ids;
      ids.insert(ids.end(), own.begin(), own.end());
      ids.insert(ids.end(), first.size() - own.size(), own.back());
    }
    Tensor plain;
    for (std::size_t run = 0; run < runs; ++run) {
      Taps taps;
      std::optional<AppliedInterventions> changes;
      if (run == 1) {
        const Interventions here = for_text(request_.interventions, model_, first);
        check_fits(here, T);
        changes.emplace(model_.model(), here);
        changes->put_on(taps);
      }
      for (const std::string& name : taps_) taps.observe(name);
      const Tensor logits =
          model_.model().forward(Tensor::from_ids({B, T}, ids), {.taps = &taps}).value();
      require_finite(logits.values(), run == 0 ? "the prediction" : "the changed prediction",
                     model_, first);
      std::size_t table = run * (taps_.size() + (logits_ ? 1 : 0));
      for (const std::string& name : taps_) keep_rows(rows_[table++], pass, taps.value(name), name);
      if (logits_) keep_rows(rows_[table], pass, logits, kLogitsTap);
      for (std::size_t b = 0; b < pass.size(); ++b) {
        const std::size_t last = prompts_[pass[b]].ids.size() - 1;
        note_outcome(outcomes[pass[b]], run, row_of(logits, b, last),
                     run == 1 ? row_of(plain, b, last) : std::span<const float>());
      }
      if (run == 0) plain = logits;
    }
  }

  static std::span<const float> row_of(const Tensor& logits, std::size_t b, std::size_t t) {
    const auto T = static_cast<std::size_t>(logits.size(1)),
               V = static_cast<std::size_t>(logits.size(2));
    return logits.values().subspan((b * T + t) * V, V);
  }

  void note_outcome(PromptOutcome& outcome, std::size_t run, std::span<const float> row,
                    std::span<const float> plain) const {
    const double log_sum = log_sum_of(row);
    std::vector<NextToken>& next = run == 0 ? outcome.next : outcome.changed_next;
    for (const TokenId id : likeliest_tokens(row, request_.top)) {
      const double logit = row[static_cast<std::size_t>(id)];
      next.push_back(
          {id, static_cast<std::int64_t>(next.size()), logit, std::exp(logit - log_sum)});
    }
    if (run == 1) outcome.divergence = std::max(divergence(plain, row), 0.0);
  }

  const ActivationsRequest& request_;
  const LoadedModel& model_;
  const std::vector<Prompt>& prompts_;
  std::vector<std::string> taps_, names_;
  bool logits_ = false;
  std::vector<std::vector<Tensor>> rows_;  // by table and prompt
  std::size_t begin_ = 0, end_ = 0;
};

Json about_json(const ActivationsResult& result) {
  Json tables = Json::array();
  for (const ActivationsResult::Table& table : result.tables)
    tables.push_back({{"name", table.name}, {"shape", table.shape}});
  return {{"filigree", version_string()},
          {"model", result.model},
          {"prompts", result.prompts.size()},
          {"rows", result.rows},
          {"interventions", to_json(result.request.interventions)},
          {"tables", tables}};
}

std::string next_text(const ActivationsResult& result, const std::vector<NextToken>& next) {
  std::vector<std::string> texts;
  for (const NextToken& token : next)
    texts.push_back(fmt::format("{} {:.1f} %",
                                printable(fmt::format("\"{}\"", result.shown[token.id])),
                                100.0 * token.probability));
  return fmt::format("{}", fmt::join(texts, "  "));
}

}  // namespace

ActivationsResult run(const ActivationsRequest& request, Models models, const Context& context) {
  const LoadedModel& model = models.only();
  if (request.taps.empty() != request.out.empty())
    throw RequestError(request.out.empty()
                           ? "say with --out where the activations go: .npz, .safetensors or a "
                             "folder of shards"
                           : "say with --tap which activations are written; 'logits' are those of "
                             "every position");
  ActivationsResult result;
  result.request = request, result.model = model.name(), result.label = model.label();
  const PromptSet set = read_prompts(request.prompts, models, context);
  result.prompts.resize(set.prompts.size());
  for (std::size_t p = 0; p < set.prompts.size(); ++p) {
    result.prompts[p].ids = set.prompts[p].ids;
    result.rows += static_cast<std::int64_t>(set.prompts[p].ids.size());
  }
  ActivationRuns runs(request, model, set.prompts);
  const std::unique_ptr<ActivationFiles> files =
      request.out.empty() ? nullptr : ActivationFiles::create(request.out, request.shard_bytes);
  const auto report =
      context.begin({"activations", "prompts", static_cast<std::int64_t>(set.prompts.size())});
  // The first prompt alone says how much memory a row takes.
  std::int64_t rows_at_once = 1;
  for (std::size_t begin = 0; begin < set.prompts.size();) {
    context.throw_if_stopped();
    std::size_t end = begin;
    for (std::int64_t rows = 0; end < set.prompts.size() && (end == begin || rows < rows_at_once);
         ++end)
      rows += static_cast<std::int64_t>(set.prompts[end].ids.size());
    runs.run(begin, end, result.prompts);
    if (files) {
      const std::vector<ActivationTable> tables = runs.rows();
      files->append(tables, static_cast<std::int64_t>(end - begin));
      if (begin == 0) {
        std::size_t bytes = 0;
        for (const ActivationTable& table : tables) {
          bytes += table.rows.bytes();
          std::vector<std::int64_t> shape(table.rows.shape().extents().begin(),
                                          table.rows.shape().extents().end());
          shape[0] = result.rows;
          result.tables.push_back({table.name, std::move(shape)});
        }
        rows_at_once = std::clamp<std::int64_t>(
            kBytesAtOnce / std::max<std::int64_t>(
                               1, static_cast<std::int64_t>(bytes) / tables[0].rows.size(0)),
            1, kMostTokensAtOnce);
      }
    } else {
      rows_at_once = kMostTokensAtOnce;
    }
    report->update(static_cast<std::int64_t>(end));
    begin = end;
  }
  report->finish();
  for (const PromptOutcome& prompt : result.prompts) {
    for (const TokenId id : prompt.ids) result.shown.add(model.tokenizer(), id);
    for (const auto* next : {&prompt.next, &prompt.changed_next})
      for (const NextToken& token : *next) result.shown.add(model.tokenizer(), token.id);
  }
  if (files) result.bytes = files->finish(about_json(result));
  return result;
}

Json to_json(const ActivationsResult& result) {
  const auto next_json = [&](const std::vector<NextToken>& next) {
    Json list = Json::array();
    for (const NextToken& token : next)
      list.push_back({{"token", result.shown[token.id]},
                      {"id", token.id},
                      {"rank", token.rank + 1},
                      {"logit", token.logit},
                      {"probability", token.probability}});
    return list;
  };
  constexpr std::int64_t kMostTokensShown = 4096;
  const bool readable = result.rows <= kMostTokensShown;
  Json prompts = Json::array();
  for (const PromptOutcome& prompt : result.prompts) {
    Json tokens = Json::array();
    for (const TokenId id : prompt.ids)
      if (readable) tokens.push_back(result.shown[id]);
    const bool changed = prompt.divergence.has_value();
    prompts.push_back({{"length", prompt.ids.size()},
                       {"ids", readable ? Json(prompt.ids) : Json()},
                       {"tokens", readable ? tokens : Json()},
                       {"next", next_json(prompt.next)},
                       {"changed_next", changed ? next_json(prompt.changed_next) : Json()},
                       {"divergence", json_or_null(prompt.divergence)}});
  }
  Json json = about_json(result);
  json.erase("filigree");
  json["prompts"] = prompts;
  json["bytes"] = result.bytes;
  return json;
}

std::string text_of(const ActivationsResult& result) {
  const bool changed = !result.request.interventions.empty();
  std::vector<Table::Column> columns = {
      {"prompt", Align::kRight}, {"tokens", Align::kRight}, {"next"}};
  if (changed) columns.insert(columns.end(), {{"changed"}, {"KL", Align::kRight}});
  Table table(columns);
  for (std::size_t p = 0; p < result.prompts.size(); ++p) {
    const PromptOutcome& prompt = result.prompts[p];
    std::vector<std::string> row = {std::to_string(p + 1), std::to_string(prompt.ids.size()),
                                    next_text(result, prompt.next)};
    if (changed) {
      row.push_back(next_text(result, prompt.changed_next));
      row.push_back(fmt::format("{:.4f}", prompt.divergence.value_or(0.0)));
    }
    table.add(row);
  }
  std::string text = changed_text(result.request.interventions) + table.text();
  if (!result.tables.empty()) {
    Table written({{"table"}, {"shape"}});
    for (const ActivationsResult::Table& one : result.tables)
      written.add({one.name, fmt::format("{}", fmt::join(one.shape, " x "))});
    text += "\n" + written.text() +
            fmt::format("\n{}: {} rows of {} prompts, {}\n", printable(result.request.out.string()),
                        with_thousands(static_cast<std::uint64_t>(result.rows)),
                        result.prompts.size(), human_bytes(result.bytes));
  }
  return text;
}

}  // namespace filigree::study
