#include "apps/cli/program/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "filigree/names.h"

namespace filigree::cli {
namespace {

// Ranks that read the same wrong file fail within moments of each other.
constexpr auto kPatience = std::chrono::seconds(2);

void print_line(const std::string& line) {
  if (!line.empty()) std::cerr << terminal_text(line) << '\n' << std::flush;
}

}  // namespace

void Job::join(const std::string& command, bool parallel, CommonOptions& options) {
  if (const int count = launched_ranks(); count > 1 && !parallel)
    throw UsageError(
        fmt::format("{} processes were started, but '{}' is the work of one; start it "
                    "without mpirun",
                    count, command));
  ranks_ = make_communicator(options.device);
  if (ranks_->local_size() == 1 || options.threads > 0) return;
  options.threads = ranks_->cores();
  const long all = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (ranks_->has_own_cores() && ranks_->first() && !options.quiet &&
      static_cast<long>(ranks_->cores()) * ranks_->local_size() < all)
    print_line(
        fmt::format("filigree: the launcher gave each rank {} of the {} cores; mpirun --bind-to "
                    "none lets the {} ranks of a machine share all of them",
                    ranks_->cores(), all, ranks_->local_size()));
}

int Job::failed(const std::string& message, int exit_code) {
  const std::string line = message.empty() ? "" : "filigree" + message;
  if (ranks_ == nullptr) {
    // What goes wrong before the ranks have met goes wrong on all of them. A launcher ends all when
    // the first one has gone, so rank 0 must have spoken before.
    if (launched_rank() > 0) std::this_thread::sleep_for(kPatience);
    if (launched_rank() == 0) print_line(line);
    return exit_code;
  }
  if (ranks_->all_failed(kPatience)) {
    if (ranks_->first()) print_line(line);
    return exit_code;
  }
  if (!message.empty())
    print_line(
        fmt::format("filigree: on rank {} of {}{}", ranks_->rank(), ranks_->size(), message));
  ranks_->abort(exit_code);
  return exit_code;
}

}  // namespace filigree::cli
