#include "hub/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <new>

#include "filigree/error.h"

namespace filigree::hub {
namespace {

constexpr std::size_t kSha256Digits = 64, kGitDigits = 40;

}  // namespace

struct ContentHash::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

std::optional<ContentHash::Kind> ContentHash::kind_of(std::string_view etag) {
  if (etag.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  if (etag.size() == kSha256Digits) return Kind::kSha256;
  if (etag.size() == kGitDigits) return Kind::kGit;
  return std::nullopt;
}

ContentHash::ContentHash(Kind kind, std::uint64_t bytes)
    : kind_(kind), bytes_(bytes), state_(std::make_unique<State>()) {
  restart();
}

ContentHash::~ContentHash() = default;

void ContentHash::restart() {
  const EVP_MD* const kind = kind_ == Kind::kSha256 ? EVP_sha256() : EVP_sha1();
  require(EVP_DigestInit_ex(state_->context, kind, nullptr) == 1,
          "this machine's libcrypto does not compute {}",
          kind_ == Kind::kSha256 ? "SHA-256" : "SHA-1");
  if (kind_ == Kind::kGit) add(fmt::format("blob {}", bytes_) + '\0');
}

void ContentHash::add(std::string_view bytes) {
  require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1,
          "a checksum cannot be computed");
}

std::string ContentHash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1,
          "a checksum cannot be computed");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace filigree::hub
