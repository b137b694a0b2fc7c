#include "io/safetensors_header.h"

#include <limits>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"
#include "io/safetensors.h"
#include "json/events.h"

namespace filigree {
namespace {

class HeaderReader final : public JsonEvents {
 public:
  HeaderReader(const std::string& label, std::string_view text)
      : JsonEvents(label + ": header", text, JsonLimits()), file_label_(label) {}

  SafetensorsHeader take() { return std::move(header_); }

 private:
  // Where in the fixed structure of a header the next event belongs.
  enum class HeaderState { kStart, kNames, kMetadata, kTensor, kShape, kOffsets, kEnd };
  enum Field : unsigned { kNone = 0, kDtype = 1, kShapeField = 2, kOffsetsField = 4, kAll = 7 };

  void null() override { unexpected("null"); }
  void boolean(bool value) override { unexpected(value ? "true" : "false"); }
  void negative(std::int64_t value) override { unexpected(fmt::format("{}", value)); }
  void real(double, const std::string& spelling) override { unexpected(printable(spelling, 40)); }

  void natural(std::uint64_t value) override {
    if (place_ == HeaderState::kShape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        unexpected(fmt::format("{}", value));
      if (entry_.shape.size() == kMaxTensorRank)
        fail("{}: tensor '{}' has more than {} dimensions, the limit", file_label_,
             printable(entry_.name), kMaxTensorRank);
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return;
    }
    if (place_ == HeaderState::kOffsets && offsets_read_ < 2) {
      (offsets_read_ == 0 ? entry_.begin : entry_.end) = value;
      ++offsets_read_;
      return;
    }
    unexpected(fmt::format("{}", value));
  }

  void string(std::string&& value) override {
    if (place_ == HeaderState::kMetadata) {
      header_.metadata[metadata_key_] = std::move(value);
      return;
    }
    if (place_ != HeaderState::kTensor || field_ != kDtype)
      unexpected(fmt::format("the string \"{}\"", printable(value, 40)));
    const auto kind = tensor_kind(value);
    if (!kind)
      fail("{}: tensor '{}' has the unknown dtype '{}'", file_label_, printable(entry_.name),
           printable(value, 40));
    entry_.kind = *kind;
  }

  void key(std::string&& name) override {
    switch (place_) {
      case HeaderState::kNames: entry_.name = std::move(name); break;
      case HeaderState::kMetadata:
        if (header_.metadata.contains(name))
          fail("{}: the metadata key '{}' appears twice", file_label_, printable(name));
        if (header_.metadata.size() == kMaxMetadataKeys)
          fail("{}: more than {} metadata keys, the limit", file_label_, kMaxMetadataKeys);
        metadata_key_ = std::move(name);
        break;
      default: begin_field(name);
    }
  }

  void begin_field(const std::string& name) {
    field_ = name == "dtype"          ? kDtype
             : name == "shape"        ? kShapeField
             : name == "data_offsets" ? kOffsetsField
                                      : kNone;
    if (field_ == kNone)
      fail(
          "{}: tensor '{}' has the unknown field '{}'; the format has dtype, shape and "
          "data_offsets",
          file_label_, printable(entry_.name), printable(name, 40));
    if ((fields_ & field_) != 0)
      fail("{}: tensor '{}' has the field '{}' twice", file_label_, printable(entry_.name), name);
    fields_ |= field_;
  }

  void begin_object() override {
    if (place_ == HeaderState::kStart) {
      place_ = HeaderState::kNames;
    } else if (place_ == HeaderState::kNames && entry_.name == kMetadataKey) {
      if (std::exchange(has_metadata_, true))
        fail("{}: {} appears twice", file_label_, kMetadataKey);
      place_ = HeaderState::kMetadata;
    } else if (place_ == HeaderState::kNames) {
      place_ = HeaderState::kTensor;
      fields_ = kNone;
      offsets_read_ = 0;
    } else {
      unexpected("an object");
    }
  }

  void end_object() override {
    if (place_ == HeaderState::kTensor) finish_entry();
    place_ = place_ == HeaderState::kNames ? HeaderState::kEnd : HeaderState::kNames;
  }

  void begin_array() override {
    if (place_ == HeaderState::kTensor && field_ == kShapeField)
      place_ = HeaderState::kShape;
    else if (place_ == HeaderState::kTensor && field_ == kOffsetsField)
      place_ = HeaderState::kOffsets;
    else
      unexpected("an array");
  }

  void end_array() override {
    if (place_ == HeaderState::kOffsets && offsets_read_ != 2)
      fail("{}: tensor '{}' has {} data_offsets, should have 2: begin and end", file_label_,
           printable(entry_.name), offsets_read_);
    place_ = HeaderState::kTensor;
  }

  void finish_entry() {
    const std::string label = fmt::format("{}: tensor '{}'", file_label_, printable(entry_.name));
    if (fields_ != kAll)
      fail("{} has no {}", label,
           (fields_ & kDtype) == 0        ? "dtype"
           : (fields_ & kShapeField) == 0 ? "shape"
                                          : "data_offsets");
    if (entry_.begin > entry_.end)
      fail("{}: data_offsets [{}, {}] run backwards", label, entry_.begin, entry_.end);
    const std::size_t needed = tensor_bytes(label, entry_.kind, entry_.shape);
    if (entry_.end - entry_.begin != needed)
      fail("{}: shape {} of {} takes {} bytes, but data_offsets [{}, {}] hold {}", label,
           shape_text(entry_.shape), name_of(entry_.kind), needed, entry_.begin, entry_.end,
           entry_.end - entry_.begin);
    header_.entries.push_back(std::move(entry_));
    entry_ = {};
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case HeaderState::kMetadata:
        fail("{}: {} '{}' is {}, should be a string", file_label_, kMetadataKey,
             printable(metadata_key_), found);
      case HeaderState::kNames:
        if (entry_.name == kMetadataKey)
          fail("{}: {} is {}, should be an object of strings", file_label_, kMetadataKey, found);
        fail("{}: tensor '{}' is {}, should be an object with dtype, shape and data_offsets",
             file_label_, printable(entry_.name), found);
      case HeaderState::kShape:
        fail("{}: tensor '{}' has {} in its shape, should be integers from 0 to 2^63 - 1",
             file_label_, printable(entry_.name), found);
      case HeaderState::kOffsets:
        fail("{}: tensor '{}' has {} in its data_offsets, should be two integers from 0",
             file_label_, printable(entry_.name), found);
      case HeaderState::kTensor:
        fail("{}: tensor '{}' has {} as its {}", file_label_, printable(entry_.name), found,
             field_ == kDtype        ? "dtype, should be a string"
             : field_ == kShapeField ? "shape, should be an array"
                                     : "data_offsets, should be an array");
      default: fail("{}: header is {}, should be an object", file_label_, found);
    }
  }

  std::string file_label_;
  SafetensorsHeader header_;
  HeaderState place_ = HeaderState::kStart;
  SafetensorsEntry entry_;
  Field field_ = kNone;
  unsigned fields_ = kNone;  // those seen of the current entry
  int offsets_read_ = 0;
  std::string metadata_key_;
  bool has_metadata_ = false;
};

}  // namespace

SafetensorsHeader read_safetensors_header(const std::string& label, std::string_view text) {
  HeaderReader reader(label, text);
  reader.run();
  return reader.take();
}

}  // namespace filigree
