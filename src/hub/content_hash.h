// The checksums that the hub names contents by: SHA-256 of large files, and of small ones git's,
// which is SHA-1 over a head with the size and the content.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace filigree::hub {

class ContentHash {
 public:
  enum class Kind { kSha256, kGit };

  // The kind that an ETag is, by the number of its digits; nothing where it is none of them.
  static std::optional<Kind> kind_of(std::string_view etag);

  // git's needs the size beforehand.
  ContentHash(Kind kind, std::uint64_t bytes);
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(std::string_view bytes);
  // In small hexadecimal digits. At most once, unless restart() comes between.
  std::string finish();
  void restart();

 private:
  struct State;

  Kind kind_;
  std::uint64_t bytes_;
  std::unique_ptr<State> state_;
};

}  // namespace filigree::hub
