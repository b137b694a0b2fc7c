#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace filigree::serve {

RequestStream::RequestStream(socket_t socket, std::string request, const Limits& limits)
    : socket_(socket), request_(std::move(request)), send_(limits.send) {}

bool RequestStream::is_writable() const {
  if (send_until_ == Clock::time_point()) send_until_ = Clock::now() + send_;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(send_until_ - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one = {socket_, POLLOUT, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

ssize_t RequestStream::read(char* into, std::size_t size) {
  const std::size_t taken = std::min(size, request_.size() - read_);
  std::memcpy(into, request_.data() + read_, taken);
  read_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t RequestStream::write(const char* from, std::size_t size) {
  if (!is_writable()) return -1;
  return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Nobody reads them.
void RequestStream::get_remote_ip_and_port(std::string&, int&) const {}
void RequestStream::get_local_ip_and_port(std::string&, int&) const {}

bool RequestStream::gone() const {
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

RequestThreads::RequestThreads(const Limits& limits) : most_waiting_(limits.waiting_connections) {
  for (std::size_t t = 0; t < limits.threads; ++t) threads_.emplace_back([this] { work(); });
}

bool RequestThreads::enqueue(std::function<void()> serve) {
  const std::lock_guard lock(mutex_);
  if (ending_ || waiting_.size() >= most_waiting_) return false;
  waiting_.push_back(std::move(serve));
  changed_.notify_one();
  return true;
}

void RequestThreads::work() {
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

void RequestThreads::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace filigree::serve
