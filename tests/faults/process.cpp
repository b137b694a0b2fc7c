#include "tests/faults/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "filigree/error.h"

namespace filigree::faults {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

Place::Running Place::begin(const Start& start) const {
  static int runs = 0;
  const fs::path said = scratch / fmt::format("stderr-{}", runs++ % 2);
  std::vector<std::string> texts = {program.string()};
  texts.insert(texts.end(), start.arguments.begin(), start.arguments.end());
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  require(child >= 0, "cannot start a process");
  if (child == 0) {
    const int out = ::open("/dev/null", O_RDWR);
    const int err = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    if (!start.environment.empty() && !shim.empty()) ::setenv("LD_PRELOAD", shim.c_str(), 1);
    for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return {child, said, std::chrono::steady_clock::now(), start.kill_after};
}

Ended Place::end(const Running& running) const {
  Ended ended;
  int status = 0;
  while (::waitpid(running.process, &status, WNOHANG) == 0) {
    const auto passed = std::chrono::steady_clock::now() - running.begun;
    if (running.kill_after.count() > 0 && passed >= running.kill_after)
      ::kill(running.process, SIGKILL);
    if (passed > kPatience) {
      ended.timed_out = true;
      ::kill(running.process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ended.said = bytes_of(running.said);
  if (ended.said.size() > 600) ended.said.erase(0, ended.said.size() - 600);
  return ended;
}

long Place::operations(const Arguments& arguments, const fs::path& under, const std::string& kind,
                       Ended* ended) const {
  const fs::path count = scratch / "count";
  fs::remove(count);
  const Ended run_ended = run({arguments,
                               {{"FAULTS_UNDER", under.string()},
                                {"FAULTS_KIND", kind},
                                {"FAULTS_COUNT", count.string()}}});
  if (ended != nullptr) *ended = run_ended;
  const std::string text = bytes_of(count);
  require(!text.empty(), "the run was not counted; is the shim '{}' loaded? {}", shim.string(),
          run_ended.said);
  return std::stol(text);
}

Tree read_tree(const fs::path& folder) {
  Tree tree;
  if (!fs::exists(folder)) return tree;
  for (const fs::directory_entry& item : fs::recursive_directory_iterator(folder))
    if (item.is_regular_file()) tree[fs::relative(item.path(), folder).string()] = bytes_of(item);
  return tree;
}

std::set<std::string> read_names(const fs::path& folder) {
  std::set<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const fs::directory_entry& item : fs::recursive_directory_iterator(folder)) {
    std::string name = fs::relative(item.path().parent_path(), folder) / item.path().filename();
    if (name.starts_with("./")) name.erase(0, 2);
    if (item.is_symlink())
      name += " -> " + fs::read_symlink(item.path()).string();
    else if (item.is_directory())
      name += '/';
    names.insert(name);
  }
  return names;
}

void write_tree(const fs::path& folder, const Tree& tree) {
  fs::create_directories(folder);
  for (const auto& [name, bytes] : tree) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
}

}  // namespace filigree::faults
