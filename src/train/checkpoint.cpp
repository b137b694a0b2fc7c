#include "filigree/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "filigree/base/error.h"
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

using Moments = std::vector<std::pair<std::string, Tensor>>;

// The moments, each on the CPU while it is written.
std::vector<TensorToWrite> moments_to_write(const Moments& moments, Tensor& current) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : moments) {
    const auto extents = tensor.shape().extents();
    tensors.push_back(
        {name, TensorKind::kF32, {extents.begin(), extents.end()}, [&current, moment = tensor] {
           current = moment.to(DeviceKind::kCpu);
           return std::span(current.raw(), current.bytes());
         }});
  }
  return tensors;
}

// Of this rank's own parameters.
std::string own_moments_file(const Communicator& ranks) {
  return fmt::format("optimizer-{:05}-of-{:05}.safetensors", ranks.rank(), ranks.size());
}

void write_moments(const fs::path& file, const AdamW& optimizer, AdamW::Part part) {
  Tensor current;
  write_safetensors(file, moments_to_write(optimizer.state(part), current), {});
}

void read_moments(const fs::path& path, Moments& moments) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  for (const TensorView& view : file.tensors()) {
    Tensor tensor = Tensor::empty(Shape(view.shape));
    read_f32(view, {tensor.mutable_f32(), static_cast<std::size_t>(tensor.elements())});
    moments.emplace_back(view.name, tensor);
  }
}

nlohmann::json json_of(const TrainingState& state, const AdamW& optimizer) {
  nlohmann::json json = {{"step", state.step},
                         {"optimizer_steps", optimizer.steps()},
                         {"settings", state.settings.to_json()},
                         {"source", state.source},
                         {"objective", state.objective},
                         {"best_step", state.best_step}};
  if (state.best) json["best"] = *state.best;
  return json;
}

// Returns when all ranks have come here.
void meet(Communicator& ranks) { ranks.any(false); }

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code failure;
  fs::create_directories(path_ / "checkpoints", failure);
  require(!failure, "cannot create the run folder '{}': {}", path_.string(), failure.message());
}

void RunFolder::save(const Trainable& trained, const AdamW& optimizer, const TrainingState& state,
                     int keep, Communicator& ranks) {
  const fs::path final_path = path_ / "checkpoints" / checkpoint_name(state.step);
  fs::path partial = final_path;
  partial += ".partial";
  std::error_code ignored;
  try {
    if (ranks.first()) {
      fs::remove_all(partial, ignored);
      fs::create_directories(partial);
    }
    meet(ranks);
    trained.save(partial, ranks);
    if (optimizer.has_own())
      write_moments(partial / own_moments_file(ranks), optimizer, AdamW::Part::kOwn);
    meet(ranks);
    if (!ranks.first()) return;
    write_moments(partial / "optimizer.safetensors", optimizer, AdamW::Part::kShared);
    write_json(partial / "state.json", json_of(state, optimizer));
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
  state.settings = Settings::from_json(json.object("settings").raw(), json.source());
  state.source = json.raw().value("source", nlohmann::json());
  state.objective = json.raw().value("objective", nlohmann::json());
  state.best_step = json.integer_or("best_step", -1);
  if (json.has("best")) state.best = json.number("best");
  return state;
}

void restore_training(const fs::path& checkpoint, Trainable& trained, AdamW& optimizer,
                      Communicator& ranks) {
  trained.restore(checkpoint, ranks);
  Moments moments;
  read_moments(checkpoint / "optimizer.safetensors", moments);
  if (optimizer.has_own()) read_moments(checkpoint / own_moments_file(ranks), moments);
  const JsonObject json = JsonObject::open(checkpoint / "state.json");
  optimizer.restore(json.integer("optimizer_steps", 0), moments);
}

}  // namespace filigree
