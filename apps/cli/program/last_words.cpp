#include "apps/cli/program/shrinking_files.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "filigree/base/mapped_file.h"

namespace filigree::cli {
namespace {

// Only what a signal handler may call.
void say(const char* text, std::size_t length) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, length);
}
void say(const char* text) { say(text, std::strlen(text)); }

void end_of_file(int number, siginfo_t* info, void*) {
  const char* name = mapped_file_at(info->si_addr);
  if (name == nullptr) {  // nothing that we know of
    std::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  say("filigree: '");
  for (const char* c = name; *c != '\0'; ++c)  // a name may hold anything
    say(static_cast<unsigned char>(*c) < 0x20 || *c == 0x7F ? "?" : c, 1);
  say("' became shorter while it was read, or cannot be read any more; run the command again when "
      "the file stays as it is\n");
  ::_exit(1);
}

}  // namespace

void catch_shrinking_files() {
  struct sigaction action = {};
  action.sa_sigaction = end_of_file;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace filigree::cli
