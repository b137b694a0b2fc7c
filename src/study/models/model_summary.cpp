#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "base/file_status.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/tokenizer.h"
#include "io/checkpoint.h"
#include "model/family.h"
#include "model/lens_state_dict.h"
#include "model/stored_parameters.h"
#include "text/added_tokens.h"

namespace filigree::study {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = name.find('.', begin);
    parts.push_back(name.substr(begin, dot - begin));
    if (dot == std::string::npos) return parts;
    begin = dot + 1;
  }
}

// "transformer.h.3.attn.c_proj.weight" -> block "3", part "attn";
// "transformer.wte.weight" -> block "", part "wte".
struct Role {
  std::string block, part;
};

Role role_of(const std::string& name) {
  const std::vector<std::string> parts = split(name);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    if (is_number(parts[i])) return {parts[i], parts[i + 1]};
  return {"", parts.size() > 1 ? parts[parts.size() - 2] : parts[0]};
}

std::vector<ModelPart> parts_of(const std::vector<ParameterSpec>& specs) {
  std::vector<ModelPart> parts;  // in the order they appear
  std::map<std::string, std::set<std::string>> blocks;
  for (const ParameterSpec& spec : specs) {
    const Role role = role_of(spec.name);
    auto found = std::find_if(parts.begin(), parts.end(),
                              [&](const ModelPart& part) { return part.name == role.part; });
    if (found == parts.end()) found = parts.insert(parts.end(), {role.part, 1, 0});
    found->parameters += spec.shape.elements();
    blocks[role.part].insert(role.block);
    found->repeats = static_cast<std::int64_t>(blocks[role.part].size());
  }
  return parts;
}

// Every parameter must be there with the shape the configuration gives it, as loading demands.
void check_tensors(const Checkpoint& checkpoint, const Family& family, const ModelConfig& config,
                   const std::vector<ParameterSpec>& specs) {
  std::map<std::string, StoredParameter> stored;
  for (const StoredParameter& parameter : parameters_of(checkpoint, config))
    stored.emplace(family.canonical_name(config, parameter.name), parameter);
  for (const ParameterSpec& spec : specs) {
    const auto found = stored.find(spec.name);
    if (found == stored.end()) {
      fail("'{}': tensor '{}' {} is missing; config.json and the weights do not go together",
           checkpoint.folder().string(), spec.name, spec.shape.to_string());
    }
    const std::vector<std::int64_t> wanted = stored_shape(spec, found->second.form);
    const std::vector<std::int64_t>& shape = found->second.values->shape;
    require(shape == wanted, "'{}': tensor '{}' is {}, but config.json asks for {}",
            checkpoint.folder().string(), spec.name, shape_text(shape), shape_text(wanted));
  }
}

std::string stored_types(const Checkpoint& checkpoint) {
  std::map<std::string, std::size_t> bytes;
  for (const TensorView& view : checkpoint.tensors()) {
    std::string name(name_of(view.kind));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    bytes[name] += view.data.size();
  }
  std::vector<std::pair<std::string, std::size_t>> types(bytes.begin(), bytes.end());
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& type : types) names.push_back(type.first);
  return fmt::format("{}", fmt::join(names, ", "));
}

Json tokenizer_json(const TokenizerSummary& tokenizer) {
  if (!tokenizer.present) return nullptr;
  Json special = Json::object();
  for (const SpecialToken& token : tokenizer.special) special[token.content] = token.id;
  const bool readable = tokenizer.problem.empty();
  return {{"kind", readable ? Json(tokenizer.kind) : Json()},
          {"vocabulary", readable ? Json(tokenizer.tokens) : Json()},
          {"special", special},
          {"problem", readable ? Json() : Json(tokenizer.problem)}};
}

// The usual ways to train it, in what its devices compute best with.
std::vector<TrainingVariant> training_variants(const ModelConfig& config, std::int64_t batch,
                                               std::int64_t length) {
  constexpr std::int64_t kRank = 16;
  struct Way {
    std::string command;
    bool sparse, recompute;
    std::int64_t lora_rank;
  };
  const Way ways[] = {
      {"pretrain", false, false, 0},
      {"sparsify", true, false, 0},
      {"sparsify --recompute", true, true, 0},
      {fmt::format("sparsify --recompute --lora-rank {}", kRank), true, true, kRank}};
  std::vector<TrainingVariant> variants;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (!has_device(device)) continue;
    const Placement placement{device, device == DeviceKind::kCpu ? DType::kF32 : DType::kBf16};
    for (const Way& way : ways) {
      TrainingSetup setup{.config = config};
      if (way.sparse) setup.teacher = config;
      setup.own_teacher = true;
      setup.batch = batch, setup.length = length;
      setup.lora_rank = way.lora_rank;
      setup.recompute = way.recompute;
      setup.placement = placement;
      variants.push_back(
          {way.command, placement, memory_of_process(device, 1), training_memory(setup)});
    }
  }
  return variants;
}

Json variant_json(const TrainingVariant& variant) {
  return {{"command", variant.command},
          {"device", name_of(variant.placement.device)},
          {"precision", name_of(variant.placement.precision)},
          {"device_memory_bytes", variant.there},
          {"memory_bytes", to_json(variant.memory)},
          {"fits", variant.fits()}};
}

}  // namespace

TokenizerSummary summarize_tokenizer(const std::filesystem::path& folder) {
  TokenizerSummary summary;
  summary.present = has_tokenizer(folder);
  if (!summary.present) return summary;
  try {
    const Tokenizer tokenizer = Tokenizer::from_folder(folder);
    summary.kind = tokenizer.of_bytes() ? "byte-level BPE" : "BPE of characters";
    summary.tokens = static_cast<std::int64_t>(tokenizer.vocab_size());
    for (const AddedToken& token : tokenizer.added_tokens())
      if (token.special) summary.special.push_back({token.content, token.id});
  } catch (const Error& error) {
    summary.problem = error.what();  // the model is still worth describing
  }
  return summary;
}

ModelSummary run(const SummaryRequest& request, Models, const Context& context) {
  const ModelSource source = model_source(request.model, context.adapter);
  const std::filesystem::path& folder = source.folder;
  ModelSummary summary;
  summary.folder = folder.string();
  summary.adapter = source.adapter.string();
  summary.config = source.config();
  const Family& family = family_of(summary.config.family, summary.folder);
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const std::vector<ParameterSpec> specs = family.parameters(summary.config);
  if (!has_transformer_lens_names(checkpoint.tensors()))
    check_tensors(checkpoint, family, summary.config, specs);
  summary.parts = parts_of(specs);
  summary.parameters = parameter_count(summary.config);
  summary.stored_as = stored_types(checkpoint);
  summary.files = checkpoint.files();
  for (const auto& file : summary.files) {
    summary.file_bytes += bytes_of_file(file);
  }
  summary.tokenizer = summarize_tokenizer(tokenizer_folder(folder));
  const std::int64_t length = request.length > 0 ? request.length : summary.config.context;
  require(length <= summary.config.context, "a length of {} is more than the model's context of {}",
          length, summary.config.context);
  summary.memory = estimate_memory(summary.config, request.batch, length);
  summary.training = training_variants(summary.config, request.batch, length);
  return summary;
}

bool living_heads_are_cheap(const ModelSummary& summary) {
  constexpr std::int64_t kParameters = 200'000'000;
  return summary.config.gate.on() && summary.parameters <= kParameters &&
         summary.tokenizer.present && summary.tokenizer.problem.empty();
}

Json to_json(const ModelSummary& summary, const std::optional<HeadsAlive>& alive) {
  const ModelConfig& config = summary.config;
  Json parts = Json::array();
  for (const ModelPart& part : summary.parts)
    parts.push_back(
        {{"name", part.name}, {"repeats", part.repeats}, {"parameters", part.parameters}});
  Json training = Json::array();
  for (const TrainingVariant& variant : summary.training) training.push_back(variant_json(variant));
  Json files = Json::array();
  for (const auto& file : summary.files) files.push_back(file.string());
  const nlohmann::json& source = config.source;
  const bool gated = source.is_object() && source.contains("gate");
  return {
      {"model", summary.folder},
      {"adapter", summary.adapter.empty() ? Json() : Json(summary.adapter)},
      {"architecture",
       {{"family", config.family},
        {"layers", config.layers},
        {"heads", config.heads},
        {"key_heads", config.key_heads},
        {"head_width", config.head_width},
        {"width", config.width},
        {"mlp_width", config.mlp_width},
        {"context", config.context},
        {"vocabulary", config.vocabulary},
        {"tied_embeddings", config.tied_embeddings}}},
      {"parameters", summary.parameters},
      {"parts", parts},
      {"weights", {{"dtype", summary.stored_as}, {"bytes", summary.file_bytes}, {"files", files}}},
      {"tokenizer", tokenizer_json(summary.tokenizer)},
      {"gate", gated ? Json(source["gate"]) : Json()},
      {"living_heads", alive ? to_json(*alive) : Json()},
      {"memory_bytes", to_json(summary.memory)},
      {"training", training}};
}

}  // namespace filigree::study
