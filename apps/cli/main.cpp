// The program `filigree`.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "apps/cli/commands.h"
#include "apps/cli/program/exit_handlers.h"

int main(int argc, char** argv) {
  filigree::cli::catch_missing_memory();  // the arguments take some already
  // A closed standard stream would give its number to the next file that is opened, and output
  // meant for the terminal would end up in that file. Standard output stays one that cannot be
  // written to: results that go nowhere are an error.
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) == -1 &&
        ::open("/dev/null", descriptor == STDERR_FILENO ? O_RDWR : O_RDONLY) == -1)
      return 1;
  // A closed pipe and a limit on the size of files are then errors of write(), so that temporary
  // files are removed on the way out.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return filigree::cli::run_filigree({argv + (argc > 0 ? 1 : 0), argv + argc});
}
