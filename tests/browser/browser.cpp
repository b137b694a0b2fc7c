#include "browser/browser.h"

#include <httplib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "filigree/error.h"
#include "support/base64.h"

namespace filigree {
namespace {

using Json = nlohmann::json;

constexpr const char* kDriver = "/usr/bin/chromedriver";
constexpr const char* kChromium = "/usr/bin/chromium";

// What a page may take; under a sanitizer the server behind it is many times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::seconds kPatience(300);
#else
constexpr std::chrono::seconds kPatience(10);
#endif

struct Process {
  int id;
  int port;
};

// Starts the driver on a port of its choice, which it prints. `said` becomes what it prints.
std::optional<Process> try_driver(std::string& said) {
  int pipe_ends[2];
  require(pipe(pipe_ends) == 0, "browser: no pipe");
  const int id = fork();
  require(id >= 0, "browser: no process");
  if (id == 0) {
    setpgid(0, 0);  // the browser it starts is stopped with it
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    execl(kDriver, kDriver, "--port=0", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(pipe_ends[1]);
  said.clear();
  const std::string before = "started successfully on port ";
  for (char c; read(pipe_ends[0], &c, 1) == 1;) {
    said += c;
    const std::size_t at = said.find(before);
    if (at != std::string::npos && c == '.')
      return Process{id, std::stoi(said.substr(at + before.size()))};
  }
  close(pipe_ends[0]);
  waitpid(id, nullptr, 0);
  return std::nullopt;
}

// The driver takes a free port of IPv6 and then the same of IPv4, which another program may have:
// it ends then, and another try gets another port.
Process start_driver() {
  std::string said;
  for (int tries = 0; tries < 5; ++tries) {
    if (const std::optional<Process> driver = try_driver(said)) return *driver;
    if (said.find("Address already in use") == std::string::npos) break;
  }
  fail("browser: chromedriver did not start: {}", said);
}

}  // namespace

struct Browser::Connection {
  explicit Connection(int port) : client("127.0.0.1", port) {
    client.set_read_timeout(6 * kPatience);
  }
  httplib::Client client;
};

std::string Browser::unavailable() {
  for (const char* program : {kDriver, kChromium})
    if (access(program, X_OK) != 0) return std::string(program) + " is not installed";
  return "";
}

Browser::Browser() {
  const Process driver = start_driver();
  driver_ = driver.id;
  connection_ = std::make_unique<Connection>(driver.port);
  // The background-networking switches keep Chromium from asking the internet by itself.
  const Json arguments = {"--headless=new",
                          "--no-sandbox",
                          "--disable-gpu",
                          "--disable-dev-shm-usage",  // containers have little of it
                          "--disable-quic",
                          "--no-first-run",
                          "--disable-background-networking",
                          "--disable-component-update",
                          "--disable-sync",
                          "--hide-scrollbars",
                          "--window-size=1280,900",
                          "--user-data-dir=" + profile_.path().string()};
  const Json capabilities = {{"browserName", "chrome"},
                             {"goog:chromeOptions", {{"binary", kChromium}, {"args", arguments}}},
                             {"goog:loggingPrefs", {{"browser", "ALL"}, {"performance", "ALL"}}}};
  const Json made = call("/session", {{"capabilities", {{"alwaysMatch", capabilities}}}});
  session_ = "/session/" + made.at("sessionId").get<std::string>();
  open("about:blank");
  log("performance");  // what the browser's own first page asked for
}

Browser::~Browser() {
  if (!session_.empty()) connection_->client.Delete(session_);
  if (driver_ > 0) {
    kill(-driver_, SIGKILL);
    waitpid(driver_, nullptr, 0);
  }
}

Json Browser::call(const std::string& path, const Json& body) {
  const auto answer = connection_->client.Post(session_ + path, body.dump(), "application/json");
  require(static_cast<bool>(answer), "browser: no answer to {}", path);
  const Json value = Json::parse(answer->body).at("value");
  require(answer->status == 200, "browser: {} failed: {}", path, value.dump().substr(0, 600));
  return value;
}

void Browser::open(const std::string& url) {
  opened_.push_back(url);
  call("/url", {{"url", url}});
}

Json Browser::run(const std::string& script) {
  return call("/execute/sync", {{"script", script}, {"args", Json::array()}});
}

void Browser::wait_for(const std::string& script) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const Json found = run(script);
    if (!found.is_null() && found != Json(false) && found != Json(0) && found != Json("")) return;
    require(std::chrono::steady_clock::now() - start < kPatience, "browser: waited in vain for {}",
            script);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string Browser::find(const std::string& selector) {
  const Json found = call("/element", {{"using", "css selector"}, {"value", selector}});
  return "/element/" + found.begin().value().get<std::string>();
}

void Browser::click(const std::string& selector) {
  call(find(selector) + "/click", Json::object());
}

void Browser::type(const std::string& selector, const std::string& text) {
  call(find(selector) + "/value", {{"text", text}});
}

void Browser::point_at(double x, double y) {
  const Json move = {{"type", "pointerMove"},
                     {"duration", 0},
                     {"x", static_cast<int>(x)},
                     {"y", static_cast<int>(y)}};
  call("/actions",
       {{"actions", {{{"type", "pointer"}, {"id", "mouse"}, {"actions", Json::array({move})}}}}});
}

void Browser::press_mouse() {
  const Json down = {{"type", "pointerDown"}, {"button", 0}},
             up = {{"type", "pointerUp"}, {"button", 0}};
  call("/actions",
       {{"actions",
         {{{"type", "pointer"}, {"id", "mouse"}, {"actions", Json::array({down, up})}}}}});
}

void Browser::press(const std::string& key) {
  const Json down = {{"type", "keyDown"}, {"value", key}}, up = {{"type", "keyUp"}, {"value", key}};
  call("/actions",
       {{"actions", {{{"type", "key"}, {"id", "keys"}, {"actions", Json::array({down, up})}}}}});
}

Json Browser::log(const std::string& type) { return call("/se/log", {{"type", type}}); }

std::vector<std::string> Browser::console_errors() {
  std::vector<std::string> errors;
  for (const Json& entry : log("browser"))
    if (entry.at("level") == "SEVERE") errors.push_back(entry.at("message").get<std::string>());
  return errors;
}

std::vector<std::string> Browser::requests() {
  std::vector<std::string> addresses;
  for (const Json& entry : log("performance")) {
    const Json message = Json::parse(entry.at("message").get<std::string>()).at("message");
    if (message.at("method") != "Network.requestWillBeSent") continue;
    std::string address = message.at("params").at("request").at("url");
    const bool page = std::find(opened_.begin(), opened_.end(), address) != opened_.end();
    if (!page && !address.starts_with("data:")) addresses.push_back(std::move(address));
  }
  return addresses;
}

void Browser::screenshot(const std::string& path) {
  const auto answer = connection_->client.Get(session_ + "/screenshot");
  require(answer && answer->status == 200, "browser: no screenshot");
  std::ofstream(path, std::ios::binary)
      << from_base64(Json::parse(answer->body).at("value").get<std::string>());
}

}  // namespace filigree
