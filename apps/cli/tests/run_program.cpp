#include "apps/cli/tests/run_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/scratch_folder.h"
#include "filigree/error.h"

namespace filigree::cli {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void redirect(int descriptor, const std::string& path, int flags) {
  const int opened = ::open(path.c_str(), flags, 0600);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(99);
  if (opened != descriptor) ::close(opened);
}

// fork and exec; `prepare` runs in the child.
template <typename Prepare>
pid_t start(const std::string& file, const std::vector<std::string>& arguments,
            const Prepare& prepare) {
  std::vector<char*> argv = {const_cast<char*>(file.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  require(child >= 0, "run_program: fork failed");
  if (child == 0) {
    prepare();
    ::execv(file.c_str(), argv.data());
    ::_exit(99);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

ProgramRun run(const std::string& file, const std::vector<std::string>& arguments,
               const std::string& input) {
  const ScratchFolder scratch;
  const std::string in = scratch.path() / "in", out = scratch.path() / "out",
                    err = scratch.path() / "err";
  std::ofstream(in, std::ios::binary) << input;
  ProgramRun result;
  result.code = wait_for(start(file, arguments, [&] {
    redirect(STDIN_FILENO, in, O_RDONLY);
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT);
  }));
  result.out = contents(out);
  result.err = contents(err);
  return result;
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, const std::string& input) {
  return run(FILIGREE_PROGRAM, arguments, input);
}

ProgramRun run_shell(const std::string& command_line) {
  ::setenv("FILIGREE", FILIGREE_PROGRAM, 1);
  return run("/bin/sh", {"-c", command_line}, "");
}

ProgramRun run_and_interrupt(const std::vector<std::string>& arguments) {
  const ScratchFolder scratch;
  const std::string err = scratch.path() / "err";
  int ends[2];
  require(::pipe(ends) == 0, "run_and_interrupt: no pipe");
  const pid_t child = start(FILIGREE_PROGRAM, arguments, [&] {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT);
  });
  ::close(ends[1]);
  ProgramRun result;
  char block[4096];
  bool sent = false;
  while (true) {
    const ssize_t count = ::read(ends[0], block, sizeof(block));
    if (count <= 0) break;
    result.out.append(block, static_cast<std::size_t>(count));
    if (!sent) ::kill(child, SIGINT);
    sent = true;
  }
  ::close(ends[0]);
  result.code = wait_for(child);
  result.err = contents(err);
  return result;
}

ProgramRun run_and_signal(const std::vector<std::string>& arguments, int signal,
                          const std::function<bool()>& ready) {
  const ScratchFolder scratch;
  const std::string out = scratch.path() / "out", err = scratch.path() / "err";
  const pid_t child = start(FILIGREE_PROGRAM, arguments, [&] {
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT);
  });
  siginfo_t ended = {};
  while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0) {
    if (ready()) {
      ::kill(child, signal);
      break;
    }
    ::usleep(500);
  }
  ProgramRun result;
  result.code = wait_for(child);
  result.out = contents(out);
  result.err = contents(err);
  return result;
}

}  // namespace filigree::cli
