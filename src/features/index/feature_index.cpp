#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/mapped_file.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "json/json.h"
#include "json/object.h"

namespace filigree {
namespace {

constexpr std::string_view kIndexMagic = "FILFEAT1", kIndexEnd = "FEATEND1";
constexpr std::size_t kIndexFooter = 24;  // checksum, place of the table, kIndexEnd
constexpr std::size_t kLargestIndexHeader = 1 << 20;
constexpr std::size_t kMostExamples = 10000, kLongestExample = 4096;

template <typename Number>
void put(std::string& to, Number value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);  // little endian, as we run on
}

// Numbers one after the other, as far as there are any.
class IndexBytes {
 public:
  IndexBytes(std::span<const std::byte> bytes, std::string label)
      : rest_(bytes), label_(std::move(label)) {}

  template <typename Number>
  Number take() {
    Number value;
    if (rest_.size() < sizeof value) fail("{} is cut off", label_);
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::size_t count(std::uint64_t number, std::size_t most, std::size_t bytes_each) const {
    if (number > most || number * bytes_each > rest_.size())
      fail("{} counts {} of something that it has not", label_, number);
    return static_cast<std::size_t>(number);
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  std::string label_;
};

void put_example(std::string& to, const FeatureExample& example) {
  put(to, example.position);
  put(to, example.value);
  put(to, static_cast<std::uint16_t>(example.centre));
  put(to, static_cast<std::uint16_t>(example.tokens.size()));
  for (const TokenId id : example.tokens) put(to, id);
  std::vector<std::uint16_t> halves(example.activations.size());
  f32_to_f16(example.activations.data(), halves.data(), halves.size());
  for (const std::uint16_t half : halves) put(to, half);
}

FeatureExample take_example(IndexBytes& from, const std::string& label) {
  FeatureExample example;
  example.position = from.take<std::uint64_t>();
  example.value = from.take<float>();
  example.centre = from.take<std::uint16_t>();
  const std::size_t length = from.count(from.take<std::uint16_t>(), kLongestExample, 6);
  if (static_cast<std::size_t>(example.centre) >= length)
    fail("{} has an example of {} tokens around token {}", label, length, example.centre);
  if (!std::isfinite(example.value))
    fail("{} has an example with the activation {}", label, example.value);
  for (std::size_t i = 0; i < length; ++i) example.tokens.push_back(from.take<TokenId>());
  for (std::size_t i = 0; i < length; ++i) {
    const auto half = from.take<std::uint16_t>();
    float value = 0;
    f16_to_f32(&half, &value, 1);
    example.activations.push_back(std::isfinite(value) ? value : 0.0f);
  }
  return example;
}

std::string packed(const FeatureRecord& record) {
  std::string bytes;
  put(bytes, record.count);
  put(bytes, record.min);
  put(bytes, record.max);
  const auto& counts = record.histogram.counts();
  put(bytes, static_cast<std::uint16_t>(
                 std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; })));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    put(bytes, static_cast<std::uint16_t>(record.histogram.first_bin() + static_cast<int>(i)));
    put(bytes, counts[i]);
  }
  for (const std::vector<FeatureExample>* list : {&record.top, &record.sampled}) {
    put(bytes, static_cast<std::uint16_t>(list->size()));
    for (const FeatureExample& example : *list) put_example(bytes, example);
  }
  return bytes;
}

FeatureRecord unpacked(std::span<const std::byte> bytes, const std::string& label) {
  IndexBytes from(bytes, label);
  FeatureRecord record;
  record.count = from.take<std::uint64_t>();
  record.min = from.take<float>();
  record.max = from.take<float>();
  if (!(record.min > 0 && record.min <= record.max && std::isfinite(record.max)))
    fail("{} has activations from {} to {}", label, record.min, record.max);
  const std::size_t bins = from.count(from.take<std::uint16_t>(), ActivationHistogram::kBins, 10);
  for (std::size_t i = 0; i < bins; ++i) {
    const int bin = from.take<std::uint16_t>();
    record.histogram.add_to_bin(bin, from.take<std::uint64_t>());
  }
  if (record.histogram.total() != record.count)
    fail("{} counts {} tokens and {} in its histogram", label, record.count,
         record.histogram.total());
  for (std::vector<FeatureExample>* list : {&record.top, &record.sampled}) {
    const std::size_t examples = from.count(from.take<std::uint16_t>(), kMostExamples, 16);
    for (std::size_t i = 0; i < examples; ++i) list->push_back(take_example(from, label));
  }
  if (!from.empty()) fail("{} goes on behind its end", label);
  return record;
}

std::uint64_t parse_checksum(const std::string& text, const std::string& source) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (failure != std::errc() || end != text.data() + text.size())
    fail("'{}': '{}' is no checksum", source, text);
  return value;
}

}  // namespace

FeatureIndexWriter::FeatureIndexWriter(const std::filesystem::path& path,
                                       const FeatureIndexFacts& facts)
    : file_(std::make_unique<AtomicFile>(path)),
      features_(static_cast<std::size_t>(facts.layers * facts.features)) {
  header_ =
      nlohmann::ordered_json{
          {"model", facts.model},       {"transcoder", facts.transcoder},
          {"text", facts.text},         {"layers", facts.layers},
          {"features", facts.features}, {"tokens", facts.tokens},
          {"length", facts.length},     {"tokenizer", checksum_text(facts.tokenizer)}}
          .dump();
  std::string begin(kIndexMagic);
  put(begin, static_cast<std::uint64_t>(header_.size()));
  begin += header_;
  file_->write(begin);
  position_ = begin.size();
}

FeatureIndexWriter::~FeatureIndexWriter() = default;

void FeatureIndexWriter::add(const FeatureRecord& record) {
  offsets_.push_back(position_);
  if (!record.active()) return;
  const std::string payload = packed(record);
  std::string bytes;
  put(bytes, xxh64(payload));
  bytes += payload;
  file_->write(bytes);
  position_ += bytes.size();
}

void FeatureIndexWriter::commit() {
  require(offsets_.size() == features_, "features: an index of {} features has {}", features_,
          offsets_.size());
  offsets_.push_back(position_);
  std::string table;
  for (const std::uint64_t offset : offsets_) put(table, offset);
  std::string end = table;
  put(end, xxh64(header_ + table));
  put(end, position_);
  end += kIndexEnd;
  file_->write(end);
  file_->commit();
}

FeatureIndex FeatureIndex::open(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return from_bytes(file->bytes(), path.string(), file);
}

FeatureIndex FeatureIndex::from_bytes(std::span<const std::byte> bytes, const std::string& source,
                                      std::shared_ptr<const void> owner) {
  const auto text = [&](std::size_t at, std::size_t size) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, size);
  };
  constexpr std::size_t kBegin = 16;
  if (bytes.size() < kBegin + kIndexFooter || text(0, kIndexMagic.size()) != kIndexMagic)
    fail("'{}' is no index of features; filigree features index makes one", source);
  if (text(bytes.size() - kIndexEnd.size(), kIndexEnd.size()) != kIndexEnd)
    fail("'{}' is cut off", source);
  IndexBytes front(bytes.subspan(kIndexMagic.size()), "'" + source + "'");
  IndexBytes back(bytes.last(kIndexFooter), "'" + source + "'");
  const auto header_size = front.take<std::uint64_t>();
  const auto checksum = back.take<std::uint64_t>();
  const auto table = back.take<std::uint64_t>();
  const std::uint64_t end = bytes.size() - kIndexFooter;
  if (header_size > kLargestIndexHeader || header_size > end - kBegin ||
      table < kBegin + header_size || table > end)
    fail("'{}': header and table do not lie inside the file", source);
  const std::string_view header = text(kBegin, header_size), places = text(table, end - table);
  if (xxh64(std::string(header) + std::string(places)) != checksum)
    fail("'{}' is damaged: its checksum is wrong", source);
  const JsonObject json = JsonObject::parse(header, source);
  FeatureIndex index;
  index.source_ = source;
  index.owner_ = std::move(owner);
  index.bytes_ = bytes;
  constexpr std::int64_t kMost = 1 << 30;
  index.facts_ = {json.string("model"),
                  json.string("transcoder"),
                  json.string("text"),
                  json.integer("layers", 1, kMost),
                  json.integer("features", 1, kMost),
                  static_cast<std::uint64_t>(json.integer("tokens", 1)),
                  json.integer("length", 1),
                  parse_checksum(json.string("tokenizer"), source)};
  const auto records = static_cast<std::uint64_t>(index.facts_.layers) *
                       static_cast<std::uint64_t>(index.facts_.features);
  if (places.size() != (records + 1) * sizeof(std::uint64_t))
    fail("'{}' has a table of {} bytes for {} features", source, places.size(), records);
  index.offsets_.resize(records + 1);
  std::memcpy(index.offsets_.data(), places.data(), places.size());
  if (index.offsets_.front() != kBegin + header_size || index.offsets_.back() != table ||
      !std::is_sorted(index.offsets_.begin(), index.offsets_.end()))
    fail("'{}': the places of its records are out of order", source);
  return index;
}

FeatureRecord FeatureIndex::record(const FeatureId& feature) const {
  require(feature.layer >= 0 && feature.layer < facts_.layers && feature.feature >= 0 &&
              feature.feature < facts_.features,
          "'{}' has no feature {}; it has {} layers of {}", source_, feature_name(feature),
          facts_.layers, facts_.features);
  const auto number = static_cast<std::size_t>(feature.layer * facts_.features + feature.feature);
  const std::span<const std::byte> bytes =
      bytes_.subspan(offsets_[number], offsets_[number + 1] - offsets_[number]);
  if (bytes.empty()) return {};
  const std::string label = fmt::format("'{}': the record of {}", source_, feature_name(feature));
  const auto checksum = IndexBytes(bytes, label).take<std::uint64_t>();
  if (xxh64(bytes.subspan(sizeof checksum)) != checksum) fail("{} is damaged", label);
  return unpacked(bytes.subspan(sizeof checksum), label);
}

double FeatureIndex::frequency(const FeatureRecord& record) const {
  return static_cast<double>(record.count) / static_cast<double>(facts_.tokens);
}

}  // namespace filigree
