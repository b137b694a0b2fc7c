#include "analyze/maps/map_file.h"

#include <array>
#include <cmath>

#include "base/atomic_file.h"
#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/names.h"
#include "io/npz.h"
#include "io/safetensors_writer.h"

namespace filigree {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::int32_t> head_table(const std::vector<HeadId>& heads) {
  std::vector<std::int32_t> table;
  for (const HeadId& head : heads) {
    table.push_back(static_cast<std::int32_t>(head.layer));
    table.push_back(static_cast<std::int32_t>(head.head));
  }
  return table;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::int64_t> map_shape(const MapFileLayout& layout, const MapSeries& series) {
  return {static_cast<std::int64_t>(layout.heads.size()), series.length, series.length};
}

std::string map_name(const MapFileLayout& layout, const MapSeries& series) {
  return fmt::format("{}.{}", series.name, name_of(layout.kind));
}

Json series_json(const MapSeries& series) {
  Json json = {{"name", series.name}, {"length", series.length}};
  if (!series.prompt.ids.empty()) json["ids"] = series.prompt.ids;
  if (!series.prompt.tokens.empty()) json["tokens"] = series.prompt.tokens;
  return json;
}

class NpzMaps final : public MapFile {
 public:
  NpzMaps(const std::filesystem::path& path, MapFileLayout layout)
      : MapFile(std::move(layout)), npz_(path) {
    const std::vector<std::int32_t> heads = head_table(layout_.heads);
    npz_.add_text("meta.json", text_of(meta()));
    npz_.add("heads", TensorKind::kI32, {static_cast<std::int64_t>(layout_.heads.size()), 2},
             std::as_bytes(std::span(heads)));
  }

 private:
  void begin_series(const MapSeries& series) override {
    if (!series.prompt.ids.empty())
      npz_.add(series.name + ".ids", TensorKind::kI32, {series.length},
               std::as_bytes(std::span(series.prompt.ids)));
    npz_.begin(map_name(layout_, series), TensorKind::kF32, map_shape(layout_, series));
  }
  void write_map(const MapSeries&, const HeadId&, std::span<const float> map) override {
    npz_.write(std::as_bytes(map));
  }
  void finish() override { npz_.commit(); }

  NpzWriter npz_;
};

class SafetensorsMaps final : public MapFile {
 public:
  SafetensorsMaps(const std::filesystem::path& path, MapFileLayout layout)
      : MapFile(std::move(layout)), heads_(head_table(layout_.heads)), file_(path) {
    std::vector<TensorToWrite> tensors = {
        {"heads", TensorKind::kI32, {static_cast<std::int64_t>(layout_.heads.size()), 2}, {}}};
    for (const MapSeries& series : layout_.series) {
      if (!series.prompt.ids.empty())
        tensors.push_back({series.name + ".ids", TensorKind::kI32, {series.length}, {}});
      tensors.push_back(
          {map_name(layout_, series), TensorKind::kF32, map_shape(layout_, series), {}});
    }
    file_.write(safetensors_header(path.string(), tensors, {{"filigree", text_of(meta())}}));
    file_.write(std::as_bytes(std::span(heads_)));
  }

 private:
  void begin_series(const MapSeries& series) override {
    file_.write(std::as_bytes(std::span(series.prompt.ids)));
  }
  void write_map(const MapSeries&, const HeadId&, std::span<const float> map) override {
    file_.write(std::as_bytes(map));
  }
  void finish() override { file_.commit(); }

  std::vector<std::int32_t> heads_;
  AtomicFile file_;
};

// {..., "series": [{"name", "length", "ids", "tokens", "maps": {"L0H1": [[w00], [w10, w11],
// ...]}}]} Only the cells that mean something: row i has i + 1 numbers.
class JsonMaps final : public MapFile {
 public:
  JsonMaps(const std::filesystem::path& path, MapFileLayout layout)
      : MapFile(std::move(layout)), file_(path) {
    Json front = meta();
    front.erase("series");
    std::string text = text_of(front);
    text.pop_back();  // the closing brace comes at the end
    file_.write(text + ",\"series\":[");
  }

 private:
  void begin_series(const MapSeries& series) override {
    std::string text = text_of(series_json(series));
    text.pop_back();
    file_.write((first_series_ ? "\n" : ",\n") + text + ",\"maps\":{");
    first_series_ = false;
    first_map_ = true;
  }
  void write_map(const MapSeries& series, const HeadId& head, std::span<const float> map) override {
    std::string text = fmt::format("{}\n\"{}\":[", first_map_ ? "" : ",", head_name(head));
    first_map_ = false;
    for (std::int64_t i = 0; i < series.length; ++i) {
      text += i == 0 ? "[" : ",[";
      for (std::int64_t j = 0; j <= i; ++j) {
        const float value = map[static_cast<std::size_t>(i * series.length + j)];
        if (j > 0) text += ',';
        if (std::isfinite(value))
          fmt::format_to(std::back_inserter(text), "{}", value);
        else
          text += "null";  // JSON has no other word for it
      }
      text += ']';
    }
    file_.write(text + "]");
  }
  void end_series(const MapSeries&) override { file_.write("}}"); }
  void finish() override {
    file_.write("]}\n");
    file_.commit();
  }

  AtomicFile file_;
  bool first_series_ = true, first_map_ = true;
};

}  // namespace

Json MapFile::meta() const {
  Json json = {{"format", "filigree attention maps"}, {"version", 1}};
  for (const auto& [key, value] : layout_.about.items()) json[key] = value;
  json["kind"] = name_of(layout_.kind);
  json["heads"] = Json::array();
  for (const HeadId& head : layout_.heads) json["heads"].push_back(head_name(head));
  json["series"] = Json::array();
  for (const MapSeries& series : layout_.series) json["series"].push_back(series_json(series));
  return json;
}

void MapFile::check(const std::filesystem::path& path, const MapFileLayout& layout) {
  const std::string ending = path.extension().string();
  if (ending == ".npz" || ending == ".safetensors") return;
  require(ending == ".json", "maps: '{}' must end in .npz, .safetensors or .json",
          printable(path.string()));
  std::int64_t cells = 0;
  for (const MapSeries& series : layout.series)
    cells += causal_cells(series.length) * static_cast<std::int64_t>(layout.heads.size());
  require(cells <= kMaxJsonCells,
          "maps: {} cells are too many for JSON, which takes {}; choose fewer heads, or write .npz "
          "or .safetensors",
          with_thousands(static_cast<std::uint64_t>(cells)),
          with_thousands(static_cast<std::uint64_t>(kMaxJsonCells)));
}

std::unique_ptr<MapFile> MapFile::create(const std::filesystem::path& path, MapFileLayout layout) {
  check(path, layout);
  require(!layout.heads.empty() && !layout.series.empty(), "maps: nothing to write to '{}'",
          printable(path.string()));
  const std::string ending = path.extension().string();
  if (ending == ".npz") return std::make_unique<NpzMaps>(path, std::move(layout));
  if (ending == ".safetensors") return std::make_unique<SafetensorsMaps>(path, std::move(layout));
  return std::make_unique<JsonMaps>(path, std::move(layout));
}

void MapFile::add(std::span<const float> map) {
  require(series_ < layout_.series.size(), "maps: more maps than were announced");
  const MapSeries& series = layout_.series[series_];
  require(map.size() == static_cast<std::size_t>(series.length * series.length),
          "maps: {} cells for '{}' of {} tokens", map.size(), series.name, series.length);
  if (head_ == 0) begin_series(series);
  write_map(series, layout_.heads[head_], map);
  if (++head_ < layout_.heads.size()) return;
  end_series(series);
  head_ = 0;
  ++series_;
}

void MapFile::commit() {
  require(series_ == layout_.series.size(), "maps: '{}' is not complete",
          series_ < layout_.series.size() ? layout_.series[series_].name : "");
  finish();
}

}  // namespace filigree
