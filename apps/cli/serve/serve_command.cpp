// filigree serve: models in the browser, live.
#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "serve/guard.h"
#include "serve/server.h"

namespace filigree::cli {
namespace {

constexpr int kUsualPort = 7860;
constexpr std::size_t kMostModels = 2;  // the page has two panels

struct ServeCommand {
  std::vector<std::string> models;
  std::string host;  // "": the loopback address, without a token
  int port = kUsualPort;
  bool open = false;
};

// In a process of its own, which is nobody's child, so that nobody waits for it.
void open_in_browser(const std::string& address) {
  const pid_t child = ::fork();
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (child != 0) return;
  if (::fork() == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int stream = 0; stream <= STDERR_FILENO; ++stream) ::dup2(nowhere, stream);
    ::execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
  }
  ::_exit(0);
}

void say_address(const serve::Server& server, const serve::Api& api,
                 const serve::ServerOptions& options, const Session& session) {
  std::vector<std::string> labels;
  for (const study::LoadedModel& model : api.models()) labels.push_back(model.label());
  if (!session.json())
    return session.print(
        fmt::format("{} at {}\n{}", fmt::join(labels, " and "), server.address(),
                    options.token.empty() ? "" : "whoever has this address can use the models\n"));
  session.print_json({{"models", labels},
                      {"address", server.address()},
                      {"host", options.host},
                      {"port", server.port()},
                      {"token", options.token.empty() ? Json() : Json(options.token)}});
}

void run_serve(const ServeCommand& command, const Session& session) {
  std::vector<std::string> names = command.models;
  if (names.empty()) names = {study::kReferenceDense, study::kReferenceSparse};
  if (names.size() > kMostModels)
    throw UsageError(fmt::format("MODEL: {} models; at most {} are shown side by side",
                                 names.size(), kMostModels));
  catch_interrupts();
  catch_termination();
  serve::ServerOptions options = {.port = command.port};
  if (!command.host.empty()) options.host = command.host, options.token = serve::make_token();
  const study::Context context = session.context();
  serve::Api api(study::load_models(names, context), context);
  const serve::Server server(api, options);
  say_address(server, api, options, session);
  if (command.open) open_in_browser(server.address());
  session.note("Ctrl-C ends it");
  // Another thread may get the signal, so this one looks, too.
  while (!interrupted()) ::poll(nullptr, 0, 100);
}

}  // namespace

void add_serve(Program& program) {
  const auto command = std::make_shared<ServeCommand>();
  CLI::App& app =
      program.add({"serve",
                   "Look into models in the browser: type a prompt, see maps and predictions, "
                   "switch heads off.",
                   {"filigree serve", "filigree serve gpt2 --port 8000 --open",
                    "filigree serve dense sparse --port 0 --json",
                    "filigree serve --host 0.0.0.0  # for other machines, with a token"},
                   Computes::kOnDevice,
                   true},
                  [command](Session& session) { run_serve(*command, session); });
  app.add_option("MODEL", command->models,
                 "one or two model folders or names, of one shape and tokenizer (default the pair "
                 "that the demo compares)");
  app.add_option("--port", command->port, "where to listen; 0: a port that is free")
      ->check(whole_number(0, 65535))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--host", command->host,
                 "address to listen at for other machines, which then need the token that is "
                 "printed; 0.0.0.0 is every address (default this machine alone)")
      ->check(checked_by("address",
                         [](const std::string& text) {
                           require(serve::is_address(text),
                                   "'{}' is no address, such as 127.0.0.1 or 0.0.0.0",
                                   printable(text));
                         }))
      ->type_name("ADDRESS");
  app.add_flag("--open", command->open, "open the page in the browser");
}

}  // namespace filigree::cli
