// Files of attention maps, written as the maps come; docs/file_formats.md describes them.
//
//   .npz           NumPy
//   .safetensors   everything that reads checkpoints
//   .json          small amounts, for scripts and pages; refused beyond kMaxJsonCells
//
// A file holds series of maps: one for each model and prompt, or for each model's average. A series
// "model0.prompt0" of kind weights is the array "model0.prompt0.weights" [heads, T, T], with the
// prompt's tokens as "model0.prompt0.ids" [T] when there is one prompt; "heads" [heads, 2] has
// layer and head of each row.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "filigree/maps.h"

namespace filigree {

// Cells that a JSON file may hold: about 20 MB of text.
inline constexpr std::int64_t kMaxJsonCells = 2000000;

struct MapSeries {
  std::string name;
  std::int64_t length = 0;
  Prompt prompt = {};  // empty for an average
};

struct MapFileLayout {
  MapKind kind = MapKind::kWeights;
  std::vector<HeadId> heads = {};
  std::vector<MapSeries> series = {};
  nlohmann::ordered_json about = nlohmann::ordered_json::object();  // models, version, command
};

class MapFile {
 public:
  // Chosen by the ending of `path`. Throws Error that lists the endings there are, and for JSON
  // that would be too large.
  static std::unique_ptr<MapFile> create(const std::filesystem::path& path, MapFileLayout layout);
  // Throws what create() throws, before any work is done.
  static void check(const std::filesystem::path& path, const MapFileLayout& layout);

  virtual ~MapFile() = default;
  MapFile(const MapFile&) = delete;
  MapFile& operator=(const MapFile&) = delete;

  // The next map [T, T], row by row: the heads of the first series in order, then those of the
  // next. Throws Error for one of the wrong size or too many.
  void add(std::span<const float> map);
  // Puts the file in its place. Throws Error when maps are missing.
  void commit();

 protected:
  explicit MapFile(MapFileLayout layout) : layout_(std::move(layout)) {}

  virtual void begin_series(const MapSeries& series) = 0;
  virtual void write_map(const MapSeries& series, const HeadId& head,
                         std::span<const float> map) = 0;
  virtual void end_series(const MapSeries&) {}
  virtual void finish() = 0;

  // What the file says about itself: kind, heads, series with their tokens, and `about`.
  nlohmann::ordered_json meta() const;

  const MapFileLayout layout_;

 private:
  std::size_t series_ = 0, head_ = 0;  // of the next map
};

}  // namespace filigree
