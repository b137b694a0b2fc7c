#include <algorithm>

#include "base/file_status.h"
#include "base/folders.h"
#include "base/output_folder.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/train.h"
#include "io/folder_checksums.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "json/object.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "step-";

fs::path checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

// The step in the name of a checkpoint; none where it is not exactly a name that checkpoint_name
// gives.
std::optional<std::int64_t> step_in(const std::string& name) {
  constexpr std::size_t kMostDigits = 18;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string digits = name.substr(std::string_view(kPrefix).size());
  if (digits.empty() || digits.size() > kMostDigits ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const std::int64_t step = std::stoll(digits);
  return checkpoint_name(step) == name ? std::optional(step) : std::nullopt;
}

// Beside its place: while it is written, and once it is to go.
fs::path with_ending(fs::path checkpoint, const char* ending) { return checkpoint += ending; }
constexpr const char* kPartial = ".partial";
constexpr const char* kRemoved = ".removed";

bool is_left_behind(const std::string& name) {
  for (const std::string_view ending : {kPartial, kRemoved})
    if (name.ends_with(ending) && step_in(name.substr(0, name.size() - ending.size()))) return true;
  return false;
}

// A folder under its final name goes as a whole: first its name, then its files.
void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code ignored;
  const fs::path removed = with_ending(checkpoint, kRemoved);
  fs::remove_all(removed, ignored);
  fs::rename(checkpoint, removed);
  flush_folder(checkpoint.parent_path());  // a power cut must not bring the name back
  fs::remove_all(removed, ignored);        // what is left goes when the run is next started
}

// Throws Error unless it is what was written at that step.
void require_intact(const fs::path& checkpoint, std::int64_t step) {
  require(has_checksums(checkpoint), "'{}' has no {}", printable(checkpoint.string(), 400),
          kChecksumsFile);
  require_whole(checkpoint, ChecksumDepth::kContents);
  const std::int64_t stored = read_training_state(checkpoint).step;
  require(stored == step, "'{}' holds the state of step {}", printable(checkpoint.string(), 400),
          stored);
}

// What a run would write through, or wait at for ever.
void require_plain_entries(const fs::path& folder) {
  for (const FolderEntry& entry : entries_of(folder))
    require(entry.kind == FileKind::kFile || entry.kind == FileKind::kFolder,
            "'{}' is {}; a run writes through none, so move it out of the folder",
            printable((folder / entry.name).string(), 400),
            entry.kind == FileKind::kLink ? "a symbolic link" : "a device or a pipe");
}

using Moments = std::vector<std::pair<std::string, Tensor>>;

// The moments, each fetched while it is written.
std::vector<TensorToWrite> moments_to_write(const std::vector<AdamWMoment>& moments,
                                            Tensor& current) {
  std::vector<TensorToWrite> tensors;
  for (const AdamWMoment& moment : moments) {
    const auto extents = moment.shape.extents();
    tensors.push_back({moment.name,
                       TensorKind::kF32,
                       {extents.begin(), extents.end()},
                       [&current, fetch = moment.fetch] {
                         current = Tensor();  // before the next one takes memory
                         current = fetch();
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
    const Shape shape(view.shape);
    // As it lies in the file, since a rank may need a part of it only.
    if (view.kind == TensorKind::kF32 && view.aligned()) {
      moments.emplace_back(view.name,
                           Tensor::borrow(shape, DType::kF32, view.owner, view.bytes().data()));
      continue;
    }
    Tensor tensor = Tensor::empty(shape);
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

RunFolder::RunFolder(fs::path path, LockedBy locked) : path_(std::move(path)), locked_(locked) {
  make_folders(path_ / "checkpoints");
}

RunFolder::~RunFolder() = default;

void RunFolder::lock(Communicator& ranks) {
  std::string problem;
  if (ranks.first()) {
    try {
      if (locked_ == LockedBy::kRun && !lock_) lock_ = std::make_unique<OutputFolder>(path_);
      require_plain_entries(path_);
      require_plain_entries(path_ / "checkpoints");
      remove_left_behind();
    } catch (const Error& error) {
      problem = error.what();
    } catch (const fs::filesystem_error& error) {
      problem = fmt::format("cannot use the run folder '{}': {}", printable(path_.string(), 400),
                            error.code().message());
    }
  }
  problem = ranks.broadcast(problem);
  require(problem.empty(), "{}", problem);
}

void RunFolder::remove_left_behind() {
  for (const FolderEntry& entry : entries_of(path_ / "checkpoints"))
    if (is_left_behind(entry.name)) fs::remove_all(path_ / "checkpoints" / entry.name);
}

void RunFolder::save(const Trainable& trained, const AdamW& optimizer, const TrainingState& state,
                     int keep, Communicator& ranks) {
  const fs::path final_path = path_ / "checkpoints" / checkpoint_name(state.step);
  const fs::path partial = with_ending(final_path, kPartial);
  std::error_code ignored;
  resume_point_.reset();
  try {
    if (ranks.first()) {
      fs::remove_all(partial, ignored);
      make_folders(partial);
    }
    meet(ranks);
    trained.save(partial, ranks);
    if (optimizer.has_own())
      write_moments(partial / own_moments_file(ranks), optimizer, AdamW::Part::kOwn);
    meet(ranks);
    if (!ranks.first()) {
      // The first writes the moments that the ranks share, which all of them fetch.
      if (optimizer.sharing())
        for (const AdamWMoment& moment : optimizer.state()) moment.fetch();
      return;
    }
    write_moments(partial / "optimizer.safetensors", optimizer, AdamW::Part::kAlike);
    write_json(partial / "state.json", json_of(state, optimizer));
    write_checksums(partial, files_in(partial));
    flush_folder(partial);
    // A damaged one that the run did not go on from.
    if (is_there(final_path)) remove_checkpoint(final_path);
    fs::rename(partial, final_path);
    flush_folder(path_ / "checkpoints");
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(partial, ignored);
    fail("cannot write the checkpoint '{}': {}", printable(final_path.string(), 400),
         error.code().message());
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
  prune(state, keep, ranks);
}

std::vector<fs::path> RunFolder::checkpoints_in(const fs::path& run) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  // A run that has none is no error; a folder that cannot be read is, or the run would start over.
  if (!is_folder(run / "checkpoints")) return {};
  for (const FolderEntry& entry : entries_of(run / "checkpoints"))
    if (const auto step = step_in(entry.name); step && entry.kind == FileKind::kFolder)
      found.emplace_back(*step, run / "checkpoints" / entry.name);
  std::sort(found.begin(), found.end());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

const ResumePoint& RunFolder::resume_point() {
  if (resume_point_) return *resume_point_;
  ResumePoint point;
  const std::vector<fs::path> all = checkpoints();
  for (auto newest = all.rbegin(); newest != all.rend() && point.checkpoint.empty(); ++newest) {
    const std::int64_t step = *step_in(newest->filename().string());
    try {
      require_intact(*newest, step);
      point.checkpoint = *newest;
      point.step = step;
    } catch (const Error& error) {
      point.damaged.push_back(error.what());
    }
  }
  require(all.empty() || !point.checkpoint.empty(),
          "none of the {} checkpoints in '{}' is whole ({}); bring one back from a copy, or start "
          "again in another folder",
          all.size(), printable(path_.string(), 400),
          point.damaged.empty() ? "" : point.damaged.front());
  resume_point_ = std::move(point);
  return *resume_point_;
}

void RunFolder::prune(const TrainingState& state, int keep, Communicator& ranks) {
  if (!ranks.first()) return;
  std::vector<fs::path> all = checkpoints();
  // Later ones are damaged, and the run did not go on from them: they do not stand for an earlier
  // one.
  std::erase_if(all, [&](const fs::path& checkpoint) {
    return *step_in(checkpoint.filename().string()) > state.step;
  });
  const fs::path best = path_ / "checkpoints" / checkpoint_name(state.best_step);
  const auto kept = static_cast<std::size_t>(std::max(keep, 1));
  for (std::size_t i = 0; i + kept < all.size(); ++i) {
    if (all[i] == best) continue;
    try {
      remove_checkpoint(all[i]);
    } catch (const std::exception&) {
      // One too many does no harm, and the next save or the next run tries again.
    }
  }
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
