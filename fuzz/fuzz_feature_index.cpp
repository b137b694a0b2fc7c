// Indices of features: the bytes as they are, and again with every checksum made right, because no
// mutation keeps those.
#include <cstring>
#include <string>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "fuzz_target.h"

namespace filigree {
namespace {

void open_index(const std::string& bytes) {
  try {
    const FeatureIndex index = FeatureIndex::from_bytes(std::as_bytes(std::span(bytes)), "input");
    for (std::int64_t l = 0; l < index.facts().layers; ++l)
      for (std::int64_t f = 0; f < index.facts().features; ++f) {
        try {
          const FeatureRecord record = index.record({l, f});
          record.quantile(0.5);
          record.histogram.shares(10, record.min, record.max);
          for (const FeatureBand& band : quantile_bands(record, 5, 10))
            fuzz::expect(band.examples.size() <= 10, "bands have what they may");
        } catch (const Error& error) {
          fuzz::note_outcome(error.what());
        }
      }
    fuzz::note_outcome("accepted");
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
}

std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Header and table as far as they can be found, then each record.
std::string with_right_checksums(std::string bytes) {
  if (bytes.size() < 48) return bytes;
  const std::uint64_t header = number_at(bytes, 8), table = number_at(bytes, bytes.size() - 16);
  const std::size_t end = bytes.size() - 24;
  if (header > end - 16 || table > end || table < 16 + header) return bytes;
  for (std::size_t at = table; at + 16 <= end; at += 8) {
    const std::uint64_t begin = number_at(bytes, at), stop = number_at(bytes, at + 8);
    if (begin < 16 || stop > table || begin > stop || stop - begin < 8) continue;
    const std::uint64_t sum = xxh64(std::string_view(bytes).substr(begin + 8, stop - begin - 8));
    std::memcpy(bytes.data() + begin, &sum, sizeof sum);
  }
  const std::uint64_t sum = xxh64(bytes.substr(16, header) + bytes.substr(table, end - table));
  std::memcpy(bytes.data() + end, &sum, sizeof sum);
  return bytes;
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  filigree::open_index(bytes);
  filigree::open_index(filigree::with_right_checksums(bytes));
  return 0;
}
