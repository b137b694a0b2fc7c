#include "apps/cli/program/exit_handlers.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/mapped_file.h"
#include "base/partial_names.h"

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
  remove_partial_files();
  say("' became shorter while it was read, or cannot be read any more; run the command again when "
      "the file stays as it is\n");
  ::_exit(1);
}

[[noreturn]] void end_without_memory() {
  remove_partial_files();  // no destructor will
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    say("filigree: not enough memory\n");  // also for the exception itself
  } catch (const std::bad_alloc&) {
    say("filigree: not enough memory\n");
  } catch (...) {
    say("filigree: an error in the program\n");
    std::abort();
  }
  ::_exit(1);
}

}  // namespace

void catch_missing_memory() { std::set_terminate(end_without_memory); }

void catch_shrinking_files() {
  struct sigaction action = {};
  action.sa_sigaction = end_of_file;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace filigree::cli
