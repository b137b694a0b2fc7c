// Runs a fuzz target without libFuzzer: first every seed file as it is, then mutations of the seeds
// until the time is up. The inputs depend only on the seed number, the seed files and what the
// target reports as outcomes, never on the clock.
//
// An input that crashes the target, throws out of it, takes longer than the timeout or makes it
// allocate beyond the memory limit is saved, and the program fails. Giving the saved file as the
// only argument with --seconds 0 replays it.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "mutator.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#define FILIGREE_FUZZ_SANITIZED 1
#else
#define FILIGREE_FUZZ_SANITIZED 0
#endif

#if defined(__SANITIZE_ADDRESS__)
// The address-space limit below is of no use to a sanitizer that reserves terabytes; it has its
// own.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=1024"; }
#endif

namespace {

namespace fs = std::filesystem;
using filigree::fuzz::Mutator;

struct Options {
  double seconds = 5;
  std::uint64_t seed = 1;
  std::size_t max_length = 1 << 16;
  unsigned timeout = 10;  // seconds an input may take
  std::size_t memory = std::size_t{1} << 30;
  std::string artifacts = ".";
  std::vector<std::string> dictionary;
  std::vector<fs::path> seeds;
};

// What a signal handler needs; plain data because a handler may not allocate.
char artifact_path[4096];
const char* current_data = nullptr;
std::size_t current_size = 0;

void print(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Only calls that are safe in a signal handler.
void save_current_input() {
  const int file = ::open(artifact_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::size_t done = 0;
  while (file >= 0 && done < current_size) {
    const ssize_t written = ::write(file, current_data + done, current_size - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  if (file >= 0) ::close(file);
  print("fuzz: the input was saved to ");
  print(artifact_path);
  print("\n");
}

void on_signal(int number) {
  print(number == SIGALRM ? "fuzz: the input takes too long\n" : "fuzz: the target crashed\n");
  save_current_input();
  ::_exit(1);
}

void install_handlers() {
  // A stack of its own, since an overflow of the normal one is among what is looked for.
  static char stack[1 << 16];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGALRM, &action, nullptr);
  ::sigaction(SIGABRT, &action, nullptr);
#if FILIGREE_FUZZ_SANITIZED
  // The sanitizer handles the others with a report and then calls back.
  __sanitizer_set_death_callback(save_current_input);
#else
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigaction(number, &action, nullptr);
#endif
}

void limit_memory([[maybe_unused]] std::size_t bytes) {
#if !FILIGREE_FUZZ_SANITIZED
  const rlimit limit = {bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) throw std::runtime_error("cannot limit the memory");
#endif
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Files as they are; folders as their files, in the order of their names.
std::vector<fs::path> seed_files(const std::vector<fs::path>& given) {
  std::vector<fs::path> files;
  for (const fs::path& path : given) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.is_regular_file()) inside.push_back(entry.path());
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) {
      options.seeds.emplace_back(name);
      continue;
    }
    if (++i == argc) throw std::invalid_argument(name + " needs a value");
    const std::string value = argv[i];
    if (name == "--seconds") {
      options.seconds = std::stod(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--max-len") {
      options.max_length = std::stoull(value);
    } else if (name == "--timeout") {
      options.timeout = static_cast<unsigned>(std::stoul(value));
    } else if (name == "--memory-mb") {
      options.memory = std::stoull(value) << 20;
    } else if (name == "--artifacts") {
      options.artifacts = value;
    } else if (name == "--dictionary") {
      options.dictionary = filigree::fuzz::parse_dictionary(read_file(value));
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  // The tests are registered with a few seconds; this makes them run longer without a new build.
  if (const char* seconds = std::getenv("FILIGREE_FUZZ_SECONDS"); seconds && options.seconds > 0)
    options.seconds = std::stod(seconds);
  return options;
}

// Runs the target on `input`; what came of it is in filigree::fuzz::outcomes.
void run_target(const std::string& input, unsigned timeout) {
  // An exact copy on the heap, so that a sanitizer sees every byte read past the end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  current_data = input.data();
  current_size = input.size();
  filigree::fuzz::outcomes.clear();
  ::alarm(timeout);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ::alarm(0);
}

void fuzz(const Options& options) {
  using Clock = std::chrono::steady_clock;
  Mutator mutator(options.seed, options.max_length, options.dictionary);
  std::set<std::uint64_t> seen;
  const auto has_new_outcome = [&] {
    const std::size_t before = seen.size();
    seen.insert(filigree::fuzz::outcomes.begin(), filigree::fuzz::outcomes.end());
    return seen.size() > before;
  };
  const std::vector<fs::path> files = seed_files(options.seeds);
  for (const fs::path& file : files) {
    const std::string input = read_file(file);
    run_target(input, options.timeout);
    has_new_outcome();
    mutator.add(input);
  }
  const auto stop = Clock::now() + std::chrono::duration<double>(options.seconds);
  std::uint64_t runs = 0;
  while (options.seconds > 0 && Clock::now() < stop) {
    const std::string input = mutator.next();
    run_target(input, options.timeout);
    if (has_new_outcome()) mutator.add(input);
    ++runs;
  }
  std::printf("fuzz: %zu seed files, %llu mutations, %zu outcomes, no finding (--seed %llu)\n",
              files.size(), static_cast<unsigned long long>(runs), seen.size(),
              static_cast<unsigned long long>(options.seed));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    options = parse_options(argc, argv);
    const fs::path artifact =
        fs::path(options.artifacts) / (fs::path(argv[0]).filename().string() + ".crash");
    std::snprintf(artifact_path, sizeof(artifact_path), "%s", artifact.c_str());
    limit_memory(options.memory);
    install_handlers();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    return 2;
  }
  try {
    fuzz(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: the target threw: %s\n", error.what());
    save_current_input();
    return 1;
  }
  return 0;
}
