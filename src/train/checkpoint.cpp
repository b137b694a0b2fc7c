#include "filigree/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/io/safetensors.h"
#include "filigree/io/safetensors_writer.h"
#include "filigree/json/json.h"
#include "filigree/json/object.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "step-";

fs::path checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // some file systems do not allow it
  ::fsync(descriptor);
  ::close(descriptor);
}

// The moments, each on the CPU while it is written.
std::vector<TensorToWrite> moments_to_write(const AdamW& optimizer, Tensor& current) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : optimizer.state()) {
    const auto extents = tensor.shape().extents();
    tensors.push_back(
        {name, TensorKind::kF32, {extents.begin(), extents.end()}, [&current, moment = tensor] {
           current = moment.to(DeviceKind::kCpu);
           return std::span(current.raw(), current.bytes());
         }});
  }
  return tensors;
}

// A copy of its own on a device.
Tensor copy_on(const Tensor& tensor, DeviceKind device) {
  return tensor.device() == device ? tensor.clone() : tensor.to(device);
}

std::string adapters_text(const Model& model) {
  if (!model.lora()) return "no LoRA adapters";
  return fmt::format("LoRA adapters of rank {} and alpha {}", model.lora()->rank,
                     model.lora()->alpha);
}

void require_same_adapters(const fs::path& checkpoint, const Model& stored, const Model& model) {
  require(stored.lora() == model.lora(),
          "resume: '{}' has {} and the model {}; start a new run or give the old values",
          checkpoint.string(), adapters_text(stored), adapters_text(model));
}

void copy_parameters(const fs::path& checkpoint, const std::vector<NamedParameter>& stored,
                     const std::vector<NamedParameter>& parameters) {
  require(stored.size() == parameters.size(), "'{}': the checkpoint is of another model",
          checkpoint.string());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const NamedParameter& from = stored[i];
    const NamedParameter& to = parameters[i];
    require(from.name == to.name && from.variable.shape() == to.variable.shape(),
            "'{}': parameter '{}' {} is not the model's '{}' {}", checkpoint.string(), from.name,
            from.variable.shape().to_string(), to.name, to.variable.shape().to_string());
    to.variable.mutable_value() = copy_on(from.variable.value(), to.variable.value().device());
  }
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code failure;
  fs::create_directories(path_ / "checkpoints", failure);
  require(!failure, "cannot create the run folder '{}': {}", path_.string(), failure.message());
}

void RunFolder::save(const Model& model, const AdamW& optimizer, const TrainingState& state,
                     int keep) {
  const fs::path final_path = path_ / "checkpoints" / checkpoint_name(state.step);
  fs::path partial = final_path;
  partial += ".partial";
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  try {
    // Weights and adapters apart: merging rounds, and the run must go on from the same bits.
    save_model(model, partial, {.dtype = DType::kF32, .keep_adapters = true});
    Tensor current;
    write_safetensors(partial / "optimizer.safetensors", moments_to_write(optimizer, current), {});
    nlohmann::json json = {{"step", state.step},           {"optimizer_steps", optimizer.steps()},
                           {"settings", state.settings},   {"source", state.source},
                           {"objective", state.objective}, {"best_step", state.best_step}};
    if (state.best) json["best"] = *state.best;
    write_json(partial / "state.json", json);
    flush_folder(partial);
    fs::remove_all(final_path, ignored);  // of an earlier attempt at the same step
    fs::rename(partial, final_path);
    flush_folder(path_ / "checkpoints");
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(partial, ignored);
    fail("cannot write the checkpoint '{}': {}", final_path.string(), error.code().message());
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
  prune(state, keep);
}

std::vector<fs::path> RunFolder::checkpoints() const {
  std::vector<fs::path> found;
  for (const fs::directory_entry& item : fs::directory_iterator(path_ / "checkpoints")) {
    const std::string name = item.path().filename().string();
    if (item.is_directory() && name.starts_with(kPrefix) && !name.ends_with(".partial"))
      found.push_back(item.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void RunFolder::prune(const TrainingState& state, int keep) {
  std::vector<fs::path> all = checkpoints();
  const fs::path best = path_ / "checkpoints" / checkpoint_name(state.best_step);
  const auto kept = static_cast<std::size_t>(std::max(keep, 1));
  std::error_code ignored;
  for (std::size_t i = 0; i + kept < all.size(); ++i)
    if (all[i] != best) fs::remove_all(all[i], ignored);
}

TrainingState read_training_state(const fs::path& checkpoint) {
  const JsonObject json = JsonObject::open(checkpoint / "state.json");
  TrainingState state;
  state.step = json.integer("step", 0);
  state.settings = json.object("settings").raw();
  state.source = json.raw().value("source", nlohmann::json());
  state.objective = json.raw().value("objective", nlohmann::json());
  state.best_step = json.integer_or("best_step", -1);
  if (json.has("best")) state.best = json.number("best");
  return state;
}

void restore_training(const fs::path& checkpoint, Model& model, AdamW& optimizer) {
  const auto stored = load_model(checkpoint, {.placement = Placement()});
  require_same_adapters(checkpoint, *stored, model);
  copy_parameters(checkpoint, stored->parameters(), model.parameters());
  copy_parameters(checkpoint, stored->lora_parameters(), model.lora_parameters());
  for (std::size_t i = 0; i < model.gate_biases().size(); ++i) {
    require(i < stored->gate_biases().size() &&
                stored->gate_biases()[i].shape() == model.gate_biases()[i].shape(),
            "'{}': the checkpoint's gate is another", checkpoint.string());
    const Variable& bias = model.gate_biases()[i];
    bias.mutable_value() = copy_on(stored->gate_biases()[i].value(), bias.value().device());
  }
  const SafetensorsFile file = SafetensorsFile::open(checkpoint / "optimizer.safetensors");
  std::vector<std::pair<std::string, Tensor>> moments;
  for (const TensorView& view : file.tensors()) {
    Tensor tensor = Tensor::empty(Shape(view.shape));
    read_f32(view, {tensor.mutable_f32(), static_cast<std::size_t>(tensor.elements())});
    moments.emplace_back(view.name, tensor);
  }
  const JsonObject json = JsonObject::open(checkpoint / "state.json");
  optimizer.restore(json.integer("optimizer_steps", 0), moments);
}

void require_same_settings(const nlohmann::json& stored, const nlohmann::json& wanted) {
  for (const auto& [key, value] : wanted.items()) {
    require(stored.contains(key), "resume: the run was started without the setting '{}'", key);
    require(
        stored[key] == value,
        "resume: '{}' was {} when the run was started and is {} now; start a new run or give the "
        "old value",
        key, printable(stored[key].dump()), printable(value.dump()));
  }
}

}  // namespace filigree
