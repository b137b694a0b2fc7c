#include "apps/cli/program/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/cli/program/session.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

// What is read at once lies in memory several times over; devices and pipes may never end.
constexpr std::size_t kMostText = std::size_t{256} << 20;

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
      require(text.size() <= kMostText, "cannot read {}: it goes on beyond {}; give a shorter text",
              source_name(file), human_bytes(kMostText));
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

void add_chat_option(CLI::App& app, bool& chat) {
  app.add_flag("--chat", chat,
               "the prompt is what a user says: put it into the tokenizer's chat template");
}

}  // namespace filigree::cli
