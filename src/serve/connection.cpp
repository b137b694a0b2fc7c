#include "filigree/serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace filigree::serve {
namespace {

constexpr std::int64_t kLook = 50;  // milliseconds after which it looks whether the server ends
constexpr std::size_t kHeadBytes = 32 << 10;  // of a request's first line and headers
constexpr std::chrono::milliseconds kLinger{500};
constexpr std::size_t kLingerBytes = 4 << 20;

thread_local bool refusing_connection = false;

}  // namespace

BoundedStream::BoundedStream(socket_t socket, const Limits& limits, const std::atomic<bool>& ending)
    : socket_(socket),
      ending_(ending),
      send_(limits.send),
      receive_until_(Clock::now() + limits.receive),
      bytes_left_(limits.body_bytes + kHeadBytes) {}

bool BoundedStream::wait(short event, Clock::time_point until) const {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || (event == POLLIN && ending_)) return false;
    pollfd one = {socket_, event, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, kLook)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool BoundedStream::is_readable() const { return begin_ < end_ || wait(POLLIN, receive_until_); }

bool BoundedStream::is_writable() const {
  if (send_until_ == Clock::time_point()) send_until_ = Clock::now() + send_;
  return wait(POLLOUT, send_until_);
}

ssize_t BoundedStream::read(char* into, std::size_t size) {
  if (begin_ == end_) {
    if (bytes_left_ == 0 || !wait(POLLIN, receive_until_)) return -1;
    const ssize_t count = ::recv(socket_, buffer_.data(), std::min(buffer_.size(), bytes_left_), 0);
    if (count <= 0) return count;
    begin_ = 0, end_ = static_cast<std::size_t>(count);
    bytes_left_ -= end_;
  }
  const std::size_t taken = std::min(size, end_ - begin_);
  std::memcpy(into, buffer_.data() + begin_, taken);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t BoundedStream::write(const char* from, std::size_t size) {
  if (!is_writable()) return -1;
  return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Nobody reads them.
void BoundedStream::get_remote_ip_and_port(std::string&, int&) const {}
void BoundedStream::get_local_ip_and_port(std::string&, int&) const {}

bool BoundedStream::gone() const {
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void BoundedStream::end() {
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point until = Clock::now() + kLinger;
  for (std::size_t left = kLingerBytes; left > 0 && wait(POLLIN, until);) {
    const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (count <= 0) return;
    left -= std::min(left, static_cast<std::size_t>(count));
  }
}

ConnectionThreads::ConnectionThreads(const Limits& limits)
    : most_waiting_(limits.waiting_connections) {
  for (std::size_t t = 0; t < limits.threads; ++t) threads_.emplace_back([this] { work(); });
}

bool ConnectionThreads::refusing() { return refusing_connection; }

void ConnectionThreads::enqueue(std::function<void()> serve) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < most_waiting_) {
      waiting_.push_back(std::move(serve));
      changed_.notify_one();
      return;
    }
  }
  refusing_connection = true;
  serve();
  refusing_connection = false;
}

void ConnectionThreads::work() {
  while (true) {
    std::function<void()> serve;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      serve = std::move(waiting_.front());
      waiting_.pop_front();
    }
    serve();
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace filigree::serve
