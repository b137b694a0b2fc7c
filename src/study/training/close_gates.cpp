#include <fmt/format.h>

#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/training_study.h"
#include "model/copy_model.h"
#include "study/output.h"

namespace filigree::study {
namespace {

// Of the data of the request, again at every call.
std::function<EvaluationWindows()> repeated_windows(const CloseGatesRequest& request,
                                                    const LoadedModel& model) {
  const ModelConfig& config = model.config();
  if (const auto* text = std::get_if<EvaluationText>(&request.data))
    return [&request, &config, ids = evaluation_ids(model, *text)] {
      return text_windows(ids, request.windows, config);
    };
  const auto& shards = std::get<EvaluationShards>(request.data);
  check_shards_fit(shards.shards.index(), shards.folder, model.folder(), config);
  return [&request, &config, &shards] {
    return shard_windows(shards.shards.split(name_of(shards.split)), request.windows, config);
  };
}

}  // namespace

std::string ClosedGates::head(std::size_t index) const {
  const auto head = static_cast<std::int64_t>(index);
  return head_name({head / layer_heads, head % layer_heads});
}

ClosedGates run(const CloseGatesRequest& request, Models models, const Context& context) {
  const LoadedModel& asked = models.only();
  if (!(request.max_edges >= 0.0 && request.max_edges <= 1.0))
    throw RequestError(
        fmt::format("a share of {} of the edges; it lies between 0 and 1", request.max_edges));
  const std::unique_ptr<OutputFolder> out = open_output(request.out, context);
  refuse_model_in(request.out);
  LoadedModel model(asked.name(), asked.label(), copy_model(asked.model(), CopiedWeights::kOwn),
                    asked.folder());
  model.model().merge_lora();
  require(model.config().gate.on(), "{} has no gates to close; sparse post-training makes them",
          printable(asked.name()));
  const std::function<EvaluationWindows()> windows = repeated_windows(request, model);
  ClosedGates closed{request, asked.name(), {}, model.config().heads, windows().targets};
  const std::unique_ptr<WorkReport> report = context.begin({"closing gates", "measurements", 0});
  std::int64_t measured = 0;
  const auto progress = [&](double edges) {
    report->update(++measured, fmt::format("edges {:.4f} %", 100.0 * edges));
    context.throw_if_stopped();
  };
  closed.closing = filigree::close_gates(model.model(), request.max_edges, windows, progress,
                                         &context.communicator());
  report->finish();
  if (context.communicator().rank() == 0)
    save_converted(model.model(), model.folder(), request.out, request.dtype);
  return closed;
}

Json to_json(const ClosedGates& closed) {
  const GateClosing& closing = closed.closing;
  Json steps = Json::array(), heads = Json::array();
  for (const GateClosing::Step& step : closing.steps)
    steps.push_back({{"head", closed.head(step.head)},
                     {"lowered", step.lowered},
                     {"loss", step.loss},
                     {"active_edges", step.edges}});
  for (std::size_t h = 0; h < closing.lowered.size(); ++h)
    if (closing.lowered[h] != 0.0f)
      heads.push_back({{"head", closed.head(h)}, {"lowered", closing.lowered[h]}});
  return {{"model", closed.model},
          {"out", closed.request.out.string()},
          {"dtype", name_of(closed.request.dtype)},
          {"most_edges", closing.most_edges},
          {"reached", closing.reached()},
          {"tokens", closed.tokens},
          {"before", {{"loss", closing.loss}, {"active_edges", closing.edges}}},
          {"after", {{"loss", closing.last_loss()}, {"active_edges", closing.last_edges()}}},
          {"heads", heads},
          {"steps", steps}};
}

}  // namespace filigree::study
