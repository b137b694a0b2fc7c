// The arrays of a run as NumPy reads them; docs/file_formats.md describes them.
#include <algorithm>

#include "filigree/lens_study.h"
#include "filigree/version.h"
#include "io/npz.h"

namespace filigree::study {
namespace {

void add_array(NpzWriter& npz, const std::string& name, const Tensor& value) {
  const std::span<const std::int64_t> shape = value.shape().extents();
  npz.add(name, TensorKind::kF32, {shape.begin(), shape.end()}, std::as_bytes(value.values()));
}

void add_run(NpzWriter& npz, const std::string& name, const RunResult& result,
             const RunValues& run) {
  const std::int64_t T = run.logits.size(0), V = run.logits.size(1);
  const bool all = std::ranges::find(result.request.taps, kLogitsTap) != result.request.taps.end();
  if (all)
    add_array(npz, name + ".logits", run.logits);
  else
    npz.add(name + ".logits", TensorKind::kF32, {V},
            std::as_bytes(run.logits.values().subspan(static_cast<std::size_t>((T - 1) * V))));
  for (std::size_t i = 0; i < result.taps.size(); ++i) {
    add_array(npz, name + "." + result.taps[i], run.taps[i]);
    if (!run.gradients.empty())
      add_array(npz, name + ".gradient." + result.taps[i], run.gradients[i]);
  }
}

}  // namespace

void write_npz(const RunResult& result, const std::filesystem::path& file) {
  NpzWriter npz(file);
  npz.add("ids", TensorKind::kI32, {static_cast<std::int64_t>(result.ids.size())},
          std::as_bytes(std::span(result.ids)));
  add_run(npz, "plain", result, result.plain);
  if (result.changed) add_run(npz, "changed", result, *result.changed);
  const Json meta = {
      {"filigree", version_string()},
      {"model", result.model},
      {"prompt", shown_prompt(result.request.prompt)},
      {"tokens", result.tokens()},
      {"interventions", to_json(result.request.interventions)},
      {"gradient_of", result.gradient_of ? Json(result.shown[*result.gradient_of]) : Json()}};
  npz.add_text("meta.json", meta.dump(-1, ' ', false, Json::error_handler_t::replace));
  npz.commit();
}

}  // namespace filigree::study
