#include "filigree/serve/export.h"

#include <fmt/format.h>

#include <optional>

#include "filigree/analyze/maps/map_file.h"
#include "filigree/base/error.h"
#include "filigree/base/mapped_file.h"
#include "filigree/base/scratch_folder.h"
#include "filigree/base/version.h"
#include "filigree/serve/model_run.h"
#include "filigree/study/attention/attention.h"
#include "filigree/study/lens/logit_attribution.h"
#include "filigree/study/lens/logit_lens.h"

namespace filigree::serve {
namespace {

namespace fs = std::filesystem;

bool is_figure(ExportFormat format) {
  return format == ExportFormat::kSvg || format == ExportFormat::kPdf ||
         format == ExportFormat::kPng;
}

const char* type_of(ExportFormat format) {
  switch (format) {
    case ExportFormat::kSvg: return "image/svg+xml";
    case ExportFormat::kPdf: return "application/pdf";
    case ExportFormat::kPng: return "image/png";
    case ExportFormat::kJson: return "application/json";
    case ExportFormat::kNpz: break;
  }
  return "application/octet-stream";
}

// The maps as `filigree attention --out` writes them, models by their labels.
void write_numbers(std::span<const study::LoadedModel> models, const ExportQuery& query,
                   const fs::path& file, const study::Context& context) {
  MapFileLayout layout;
  layout.kind = query.kind;
  layout.heads = parse_heads(query.heads, models[0].config().layers, models[0].config().heads);
  layout.about = {{"filigree", version_string()}, {"models", Json::array()}, {"prompts", 1}};
  std::vector<ModelRun> runs;
  for (std::size_t m = 0; m < models.size(); ++m) {
    runs.push_back(run_of(models[m], query.run));
    layout.about["models"].push_back(models[m].label());
    layout.series.push_back({fmt::format("model{}.prompt0", m),
                             static_cast<std::int64_t>(runs[m].prompt.ids.size()), runs[m].prompt});
  }
  if (!runs[0].interventions.empty())
    layout.about["interventions"] = study::to_json(runs[0].interventions);
  const std::unique_ptr<MapFile> out = MapFile::create(file, layout);
  for (std::size_t m = 0; m < models.size(); ++m) {
    AppliedInterventions changes(models[m].model(), runs[m].interventions);
    CaptureOptions options = CaptureOptions::of(layout.heads, query.kind);
    options.interventions = &changes;
    std::vector<float> map(runs[m].prompt.ids.size() * runs[m].prompt.ids.size());
    capture_maps(models[m].model(), std::span(&runs[m].prompt, 1), options,
                 [&](std::span<const HeadMap> heads) {
                   context.throw_if_stopped();
                   for (const HeadMap& head : heads) {
                     fill_map(head, query.kind, map);
                     out->add(map);
                   }
                 });
  }
  out->commit();
}

void draw_maps(std::span<const study::LoadedModel> models, const ExportQuery& query,
               const fs::path& file, const study::Context& context) {
  study::AttentionRequest request;
  request.prompts.source = study::numbered_prompts({query.run.prompt});
  request.heads = query.heads;
  request.kind = query.kind;
  request.interventions = query.run.interventions;
  request.files = {file};
  request.style.theme = query.theme;
  study::run_attention(request, models, context);
}

Json with_labels(Json json, std::span<const study::LoadedModel> models) {
  for (std::size_t m = 0; m < models.size(); ++m) json["models"][m]["model"] = models[m].label();
  return json;
}

}  // namespace

Answer export_answer(std::span<const study::LoadedModel> models, const ExportQuery& query,
                     const Limits& limits, const study::Context& context) {
  const std::string name =
      fmt::format("filigree-{}.{}", name_of(query.view), name_of(query.format));
  const bool figure = is_figure(query.format);
  const study::FigureStyle style = {.theme = query.theme};
  Answer answer = {200, type_of(query.format), {}, {}, name};
  std::optional<ScratchFolder> folder;
  try {
    folder.emplace();
  } catch (const Error&) {  // names a folder of this machine, which no answer does
    fail("the server cannot make a folder for what is to be sent; set TMPDIR to one it may use");
  }
  const fs::path file = folder->path() / name;
  if (query.view == ExportView::kMaps) {
    const ModelConfig& config = models[0].config();
    check_cells(models.size() * parse_heads(query.heads, config.layers, config.heads).size(),
                run_of(models[0], query.run).prompt.ids.size(), limits.map_cells);
    figure ? draw_maps(models, query, file, context) : write_numbers(models, query, file, context);
    answer.body = MappedFile::open(file)->text();
    return answer;
  }
  if (query.format == ExportFormat::kNpz)
    throw Refusal(400, fmt::format("the {} is not written as npz", name_of(query.view)),
                  "ask for json, svg, pdf or png");
  Json json;
  figure::LabelledMaps drawing;
  if (query.view == ExportView::kLens) {
    study::LensRequest request;
    request.prompt = query.run.prompt;
    request.token = query.answer;
    request.interventions = query.run.interventions;
    const study::LensResult result = study::run_logit_lens(request, models, context);
    figure ? void(drawing = figure_of(result)) : void(json = to_json(result));
  } else {
    study::AttributionRequest request;
    request.prompt = query.run.prompt;
    request.answers = {query.answer};
    const study::AttributionResult result = study::attribute_models(request, models, context);
    figure ? void(drawing = figure_of(result)) : void(json = to_json(result));
  }
  if (figure) {
    study::save_figure(&drawing, file, style);
    answer.body = MappedFile::open(file)->text();
  } else {
    answer.body = json_answer(with_labels(std::move(json), models)).body;
  }
  return answer;
}

}  // namespace filigree::serve
