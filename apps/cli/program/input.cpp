#include "apps/cli/program/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "apps/cli/program/session.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ > STDERR_FILENO) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::string read_text(const std::string& file) {
  const Descriptor input(file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t count = input.number() < 0 ? -1 : ::read(input.number(), block, sizeof(block));
    if (count == 0) return text;
    if (count > 0) {
      text.append(block, static_cast<std::size_t>(count));
    } else if (errno == EINTR) {
      throw_if_interrupted();
    } else {
      fail("cannot read {}: {}", source_name(file), std::strerror(errno));
    }
  }
}

std::string source_name(const std::string& file) {
  return file == "-" ? "standard input" : "'" + printable(file) + "'";
}

std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options,
                                 std::string_view remedy) {
  try {
    return tokenizer.encode(text, options);
  } catch (const Error& error) {
    fail("{}: {}{}", source, error.what(), remedy);
  }
}

void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      fail(
          "model '{}': its tokenizer gives id {}, but the model has {} tokens; the folder's "
          "tokenizer belongs to another model",
          printable(model), id, vocabulary);
}

}  // namespace filigree::cli
