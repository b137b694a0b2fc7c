#include "serve/intake.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "filigree/error.h"
#include "serve/guard.h"

namespace filigree::serve {
namespace {

constexpr std::size_t kHeadBytes = 32 << 10;  // of a request's first line and headers
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::chrono::milliseconds kLinger{500};
constexpr std::size_t kLingerBytes = 4 << 20;

// As the server's other answers look. It is short, so that it goes out at once or not at all.
void send_answer(int socket, const Answer& answer) {
  std::string text = fmt::format("HTTP/1.1 {} Refused\r\n", answer.status);
  for (const auto& [name, value] : security_headers())
    text += fmt::format("{}: {}\r\n", name, value);
  text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                      answer.type, answer.body.size(), answer.body);
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Intake::Intake(const Limits& limits, Begin begin, Serve serve)
    : limits_(limits),
      begin_(std::move(begin)),
      serve_(std::move(serve)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  require(wake_ >= 0, "serve: the system has no descriptor left for its connections");
  thread_ = std::thread([this] { watch(); });
}

void Intake::take(int socket) { add({.socket = socket, .until = Clock::now() + limits_.receive}); }

void Intake::finish(int socket) {
  ::shutdown(socket, SHUT_WR);
  add({.socket = socket, .until = Clock::now() + kLinger, .finishing = true});
}

void Intake::add(Waiting connection) {
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) {
      added_.push_back(std::move(connection));
      wake();
      return;
    }
  }
  ::close(connection.socket);
}

void Intake::wake() const { ::eventfd_write(wake_, 1); }

void Intake::end() {
  {
    const std::lock_guard lock(mutex_);
    if (ending_.exchange(true)) return;
  }
  wake();
  thread_.join();
  for (const Waiting& connection : watched_) ::close(connection.socket);
  for (const Waiting& connection : added_) ::close(connection.socket);
  watched_.clear();
  added_.clear();
  ::close(wake_);
}

void Intake::watch() {
  std::vector<pollfd> sockets;
  while (!ending_) {
    sockets.assign(1, {wake_, POLLIN, 0});
    Clock::time_point next = Clock::time_point::max();
    for (const Waiting& connection : watched_) {
      sockets.push_back({connection.socket, POLLIN, 0});
      next = std::min(next, connection.until);
    }
    int wait = -1;
    if (!watched_.empty())
      wait = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count(), 0, 60'000));
    ::poll(sockets.data(), sockets.size(), wait);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
    const Clock::time_point now = Clock::now();
    std::size_t i = 1;
    for (auto connection = watched_.begin(); connection != watched_.end(); ++i) {
      bool stays = true;
      if (sockets[i].revents != 0) stays = came(*connection);
      if (stays && connection->until <= now) {
        stays = !connection->finishing && !connection->bytes.empty() &&
                refuse(*connection, error_answer(408, "the request did not come in time",
                                                 "send all of it at once"));
        if (!stays) ::close(connection->socket);
      }
      connection = stays ? std::next(connection) : watched_.erase(connection);
    }
    const std::lock_guard lock(mutex_);
    for (Waiting& connection : added_) {
      watched_.push_back(std::move(connection));
      make_room();
    }
    added_.clear();
  }
}

void Intake::make_room() {
  const auto bytes = [&] {
    return std::accumulate(
        watched_.begin(), watched_.end(), std::size_t{0},
        [](std::size_t sum, const Waiting& connection) { return sum + connection.bytes.size(); });
  };
  while (watched_.size() > limits_.open_connections ||
         (watched_.size() > 1 && bytes() > limits_.open_bytes)) {
    ::close(watched_.front().socket);
    watched_.pop_front();
  }
}

bool Intake::came(Waiting& connection) {
  char block[1 << 16];
  const ssize_t count = ::recv(connection.socket, block, sizeof block, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  if (connection.finishing) {
    connection.discarded += bytes;
    if (bytes > 0 && connection.discarded < kLingerBytes) return true;
  } else if (bytes > 0) {
    connection.bytes.append(block, bytes);
    return view_prompt(connection);
  } else if (count == 0 && !connection.bytes.empty()) {
    return refuse(connection,
                  error_answer(400, "the request ends before its end", "send all of it"));
  }
  ::close(connection.socket);
  return false;
}

bool Intake::view_prompt(Waiting& connection) {
  std::string& bytes = connection.bytes;
  if (connection.whole == 0) {
    const std::size_t end = bytes.find(kHeadEnd, connection.searched);
    connection.searched = bytes.size() - std::min(bytes.size(), kHeadEnd.size() - 1);
    if (std::min(end, bytes.size()) > kHeadBytes)
      return refuse(connection,
                    error_answer(431, "the first line and the headers are too long",
                                 fmt::format("send at most {} bytes of them", kHeadBytes)));
    if (end == std::string::npos) return true;
    const auto begun = begin_(std::string_view(bytes).substr(0, end));
    if (const auto* refusal = std::get_if<Answer>(&begun)) return refuse(connection, *refusal);
    connection.whole = end + kHeadEnd.size() + std::get<std::size_t>(begun);
  }
  if (bytes.size() < connection.whole) return true;
  bytes.resize(connection.whole);  // one request a connection
  if (serve_(connection.socket, std::move(bytes))) return false;
  return refuse(connection,
                error_answer(503, "too many requests are waiting", "ask again in a moment"));
}

// The connection stays until the client has read the answer.
bool Intake::refuse(Waiting& connection, const Answer& answer) {
  send_answer(connection.socket, answer);
  ::shutdown(connection.socket, SHUT_WR);
  connection = {.socket = connection.socket, .until = Clock::now() + kLinger, .finishing = true};
  return true;
}

}  // namespace filigree::serve
