#include "serve/export.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "analyze/maps/map_file.h"
#include "base/mapped_file.h"
#include "filigree/attention_study.h"
#include "filigree/generation_study.h"
#include "filigree/lens_study.h"
#include "filigree/version.h"
#include "serve/arcs.h"
#include "serve/changed_run.h"
#include "serve/scratch_folders.h"

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
void write_numbers(study::Models models, const ExportQuery& query, const fs::path& file,
                   const study::Context& context) {
  MapFileLayout layout;
  layout.kind = query.kind;
  layout.heads = parse_heads(query.heads, models[0].config().layers, models[0].config().heads);
  layout.about = {{"filigree", version_string()}, {"models", Json::array()}, {"prompts", 1}};
  std::vector<ChangedRun> runs;
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

void draw_maps(study::Models models, const ExportQuery& query, const fs::path& file,
               const study::Context& context) {
  study::AttentionRequest request;
  request.prompts.source = study::numbered_prompts({query.run.prompt});
  request.heads = query.heads;
  request.kind = query.kind;
  request.interventions = query.run.interventions;
  request.files = {file};
  request.style.theme = query.theme;
  study::run(request, models, context);
}

Json with_labels(Json json, study::Models models) {
  for (std::size_t m = 0; m < models.size(); ++m) json["models"][m]["model"] = models[m].label();
  return json;
}

// What a view other than the maps is drawn and written from.
struct Exported {
  Json json = {};
  std::function<void(const fs::path&, const study::FigureStyle&)> save = {};
};

template <typename Figure>
Exported exported(Json json, Figure figure) {
  return {std::move(json), [kept = std::make_shared<const Figure>(std::move(figure))](
                               const fs::path& file, const study::FigureStyle& style) {
            study::save_figure(kept.get(), file, style);
          }};
}

Exported exported_view(study::Models models, const ExportQuery& query, const Limits& limits,
                       const study::Context& context) {
  switch (query.view) {
    case ExportView::kTokens: {
      Arcs arcs = token_arcs(models, query, limits, context);
      return exported(std::move(arcs.json), std::move(arcs.figure));
    }
    case ExportView::kGenerate: {
      Arcs arcs = generated_arcs(models, query, context);
      return exported(std::move(arcs.json), std::move(arcs.figure));
    }
    case ExportView::kLens: {
      study::LensRequest request;
      request.prompt = query.run.prompt;
      request.token = query.answer;
      request.interventions = query.run.interventions;
      const study::LensResult result = study::run(request, models, context);
      return exported(with_labels(to_json(result), models), figure_of(result));
    }
    default: break;
  }
  study::AttributionRequest request;
  request.prompt = query.run.prompt;
  request.interventions = query.run.interventions;
  request.at = query.at;
  if (!query.at) request.answers = {query.answer};
  const study::AttributionResult result = study::run(request, models, context);
  return exported(with_labels(to_json(result), models), figure_of(result));
}

Answer file_answer(const std::string& name, ExportFormat format) {
  return {200, type_of(format), {}, {}, fmt::format("filigree-{}.{}", name, name_of(format))};
}

// The bytes that `write` puts into a file.
std::string written(const std::string& name, const std::function<void(const fs::path&)>& write) {
  const std::shared_ptr<const ScratchFolder> folder = scratch_folder();
  std::string bytes;
  hiding(*folder, [&] {
    const fs::path file = folder->path() / name;
    write(file);
    bytes = MappedFile::open(file)->text();
  });
  return bytes;
}

}  // namespace

Answer export_answer(study::Models models, const ExportQuery& query, const Limits& limits,
                     const study::Context& context) {
  const bool figure = is_figure(query.format);
  Answer answer = file_answer(std::string(name_of(query.view)), query.format);
  if (query.view == ExportView::kMaps) {
    const ModelConfig& config = models[0].config();
    check_cells(models.size() * parse_heads(query.heads, config.layers, config.heads).size(),
                run_of(models[0], query.run).prompt.ids.size(), limits.map_cells);
    answer.body = written(answer.file, [&](const fs::path& file) {
      figure ? draw_maps(models, query, file, context)
             : write_numbers(models, query, file, context);
    });
    return answer;
  }
  if (query.format == ExportFormat::kNpz)
    throw Refusal(400, fmt::format("the view '{}' is not written as npz", name_of(query.view)),
                  "ask for json, svg, pdf or png");
  const Exported view = exported_view(models, query, limits, context);
  answer.body =
      figure ? written(answer.file,
                       [&](const fs::path& file) { view.save(file, {.theme = query.theme}); })
             : json_answer(view.json).body;
  return answer;
}

Answer job_export_answer(const JobResult& result, const JobExportQuery& query) {
  Answer answer = file_answer("job", query.format);
  if (query.format == ExportFormat::kJson) {
    Json json = result.json;
    json.erase("figures");
    answer.body = json_answer(json).body;
    return answer;
  }
  if (query.format == ExportFormat::kNpz)
    throw Refusal(400, "the result of a job is not written as npz",
                  "ask for json, svg, pdf or png");
  if (query.figure >= result.figures.size())
    throw Refusal(
        404,
        fmt::format("there is no figure {}, the job has {}", query.figure, result.figures.size()),
        "the job's result lists its figures, from 0 on");
  answer.body = written(answer.file, [&](const fs::path& file) {
    result.figures[query.figure].save(file, {.theme = query.theme});
  });
  return answer;
}

}  // namespace filigree::serve
