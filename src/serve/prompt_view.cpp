#include "serve/prompt_view.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "analyze/interventions/cut_edges.h"
#include "serve/changed_run.h"

namespace filigree::serve {

using study::Prediction;

namespace {

constexpr std::size_t kKeptRuns = 8;

// Appends the lower triangle of a map [size, size].
void append_cells(std::span<const float> map, std::size_t size, std::vector<std::uint16_t>& cells) {
  for (std::size_t i = 0; i < size; ++i) {
    const float* row = map.data() + i * size;
    const std::size_t begin = cells.size();
    cells.resize(begin + i + 1);
    for (std::size_t j = 0; j <= i; ++j) cells[begin + j] = stored_weight(row[j]);
  }
}

std::shared_ptr<const Prediction> plain_run(const study::LoadedModel& model,
                                            const std::vector<TokenId>& ids, PlainRuns& plain) {
  if (std::shared_ptr<const Prediction> found = plain.find(model, ids)) return found;
  auto kept = std::make_shared<const Prediction>(study::predict(model, ids));
  plain.keep(model, ids, kept);
  return kept;
}

// A run of the whole text, with its changes.
Prediction captured(const study::LoadedModel& model, const ChangedRun& run,
                    const PromptViewQuery& query, CaptureOptions options,
                    const study::Context& context, std::vector<std::uint16_t>& cells) {
  const std::vector<TokenId>& ids = run.prompt.ids;
  AppliedInterventions changes(model.model(), run.interventions);
  Prediction now;
  options.interventions = &changes;
  options.logits = [&](const Tensor& logits) { now = study::prediction_of(logits, model, ids); };
  cells.reserve(options.heads.size() * (ids.size() * (ids.size() + 1) / 2));
  std::vector<float> map(ids.size() * ids.size());
  capture_maps(model.model(), std::span(&run.prompt, 1), options,
               [&](std::span<const HeadMap> heads) {
                 context.throw_if_stopped();
                 for (const HeadMap& head : heads) {
                   if (query.kind == MapKind::kWeights) {
                     append_cells(head.weights, ids.size(), cells);
                     continue;
                   }
                   fill_map(head, query.kind, map);
                   append_cells(map, ids.size(), cells);
                 }
               });
  return now;
}

}  // namespace

std::shared_ptr<const Prediction> PlainRuns::find(const study::LoadedModel& model,
                                                  const std::vector<TokenId>& ids) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& one : kept_)
    if (one.model == &model && one.ids == ids) return one.prediction;
  return nullptr;
}

void PlainRuns::keep(const study::LoadedModel& model, const std::vector<TokenId>& ids,
                     std::shared_ptr<const Prediction> prediction) {
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const Kept& one) { return one.model == &model && one.ids == ids; });
  if (kept_.size() >= kKeptRuns) kept_.erase(kept_.begin());
  kept_.push_back({&model, ids, std::move(prediction)});
}

PromptView view_prompt(const study::LoadedModel& model, const PromptViewQuery& query,
                       PlainRuns& plain, TypedText& typed, const Limits& limits,
                       const study::Context& context) {
  const ModelConfig& config = model.config();
  const ChangedRun run = run_of(model, query.run);
  const std::vector<TokenId>& ids = run.prompt.ids;
  const CaptureOptions options =
      CaptureOptions::of(parse_heads(query.heads, config.layers, config.heads), query.kind);
  check_cells(options.heads.size(), ids.size(), limits.map_cells);
  context.throw_if_stopped();
  PromptView looked;
  const bool whole = options.heads.size() == static_cast<std::size_t>(config.layers * config.heads);
  const bool remembered = run.interventions.empty() && query.kind == MapKind::kWeights && whole &&
                          typed.takes(ids.size());
  const Prediction now =
      remembered ? typed.run(ids) : captured(model, run, query, options, context, looked.cells);
  const std::size_t rows = remembered ? typed.same_since(query.after) : 0;
  if (remembered) looked.cells = typed.cells(rows);
  std::shared_ptr<const Prediction> before;
  if (run.interventions.empty())
    plain.keep(model, ids, std::make_shared<const Prediction>(now));
  else
    before = plain_run(model, ids, plain);
  Json heads = Json::array();
  for (const HeadId& head : options.heads) heads.push_back(head_name(head));
  looked.json = to_json(now, before.get(), model, query.top);
  looked.json["model"] = model.label();
  looked.json["tokens"] = run.prompt.tokens;
  looked.json["kind"] = name_of(query.kind);
  looked.json["heads"] = heads;
  looked.json["cells"] = looked.cells.size();
  looked.json["text"] = remembered ? Json(typed.text()) : Json();
  looked.json["rows"] = rows;
  looked.json["cut"] = Json::array();
  for (const CutEdges& edges :
       cut_edges(run.interventions, config, static_cast<std::int64_t>(ids.size())))
    looked.json["cut"].push_back({{"head", head_name(edges.head)},
                                  {"query", edges.query ? Json(*edges.query) : Json()},
                                  {"key", edges.key ? Json(*edges.key) : Json()}});
  return looked;
}

Answer prompt_views_answer(std::span<PromptView> models) {
  static_assert(std::endian::native == std::endian::little);
  Json list = Json::array();
  std::size_t cells = 0;
  for (PromptView& one : models) {
    one.json["first"] = cells;
    cells += one.cells.size();
    list.push_back(std::move(one.json));
  }
  std::string body = json_answer({{"models", list}}).body;
  body.append((4 - body.size() % 4) % 4, ' ');
  std::uint32_t length = static_cast<std::uint32_t>(body.size());
  char front[sizeof length];
  std::memcpy(front, &length, sizeof length);
  body.insert(0, front, sizeof front);
  std::size_t at = body.size();
  body.resize(at + cells * sizeof(std::uint16_t));
  for (PromptView& one : models) {
    if (one.cells.empty()) continue;  // without cells there is no memory to copy from
    const std::size_t bytes = one.cells.size() * sizeof(std::uint16_t);
    std::memcpy(body.data() + at, one.cells.data(), bytes);
    at += bytes;
    one.cells = {};  // they may be many
  }
  return {200, "application/octet-stream", std::move(body)};
}

}  // namespace filigree::serve
