#include "base/file_status.h"
#include "base/output_folder.h"
#include "features/files/circuit_tracer_names.h"
#include "features/files/layouts.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {

bool is_transcoder(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path path = name;
  if (is_file(path)) return path.extension() == ".safetensors";
  if (!is_there(path)) return !find_named_model(name) && find_named_features(name);
  if (is_file(path / "config.json")) return false;
  return is_file(path / kTranscoderConfig) || is_file(path / encoder_file(0)) ||
         is_file(path / layer_file(0)) || is_sparsify(path) || is_gemma_scope(path) ||
         find_clt_forge(path);
}

FeatureConversion run(const FeatureConversionRequest& request, Models, const Context&) {
  const OutputFolder out(request.out);
  require(!is_there(request.out / kTranscoderConfig),
          "'{}' holds a transcoder already; choose another folder or remove it",
          printable(request.out.string()));
  return {request, rewrite_transcoder(features_path(request.features), request.out,
                                      {.model_name = request.model_name,
                                       .dtype = request.dtype,
                                       .not_finite = request.not_finite})};
}

Json to_json(const FeatureConversion& conversion) {
  const TranscoderShape& shape = conversion.written.shape;
  return {{"features", conversion.request.features},
          {"out", conversion.request.out.string()},
          {"dtype", name_of(conversion.request.dtype)},
          {"model", conversion.written.model_name},
          {"kind", name_of(shape.kind)},
          {"layers", shape.layers},
          {"width", shape.width},
          {"features_a_layer", shape.features},
          {"parameters", shape.parameters()},
          {"bytes", conversion.written.bytes}};
}

}  // namespace filigree::study
