// The file of an index of features (docs/file_formats.md): a record for each feature of a
// transcoder, found by its number and read alone. Every record has a checksum, and so has the table
// of their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/component.h"
#include "base/mapped_file.h"
#include "features/index/feature_record.h"

namespace filigree {

// What an index is of.
struct FeatureIndexFacts {
  std::string model = {}, transcoder = {}, text = {};  // as they were named
  std::int64_t layers = 0, features = 0;               // of each layer
  std::uint64_t tokens = 0;                            // that were looked at
  std::int64_t length = 0;                             // tokens a window
  std::uint64_t tokenizer = 0;                         // tokenizer_fingerprint()
};

// Writes records in the order of layers and features.
class FeatureIndexWriter {
 public:
  FeatureIndexWriter(const std::filesystem::path& path, const FeatureIndexFacts& facts);

  // The next feature's; nothing is written of one that was never active.
  void add(const FeatureRecord& record);
  // Throws Error unless all features have been added.
  void commit();

 private:
  AtomicFile file_;
  std::string header_;
  std::size_t features_;
  std::uint64_t position_ = 0;
  std::vector<std::uint64_t> offsets_ = {};
};

class FeatureIndex {
 public:
  // Throws Error naming the file when it is no index or is damaged.
  static FeatureIndex open(const std::filesystem::path& path);
  static FeatureIndex from_bytes(std::span<const std::byte> bytes, const std::string& source,
                                 std::shared_ptr<const void> owner = nullptr);

  const FeatureIndexFacts& facts() const { return facts_; }
  // Throws Error for a feature that is not there and for a damaged record.
  FeatureRecord record(const FeatureId& feature) const;
  // Share of the tokens at which a feature is active.
  double frequency(const FeatureRecord& record) const;
  const std::string& source() const { return source_; }

 private:
  FeatureIndex() = default;

  std::string source_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  FeatureIndexFacts facts_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace filigree
