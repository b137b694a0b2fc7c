// The two sides of a connection that httplib leaves open: how long and how much a client may take
// to send its request, and how many connections there are.
#pragma once

#include <httplib.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "filigree/serve/limits.h"

namespace filigree::serve {

// A socket with one deadline for the whole request, one for the whole answer, and a number of bytes
// beyond which nothing more is read: a client that sends a byte now and then is cut off as one that
// sends nothing, and a header without end is not stored.
class BoundedStream final : public httplib::Stream {
 public:
  // Nothing more is waited for once `ending` is set: browsers keep connections open that they may
  // need. It must outlive the stream.
  BoundedStream(socket_t socket, const Limits& limits, const std::atomic<bool>& ending);

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Whether the client has closed its side.
  bool gone() const;
  // Says that the answer is over and takes, for a moment, what the client still sends: closing a
  // socket with unread bytes would throw the answer away before it is read.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool wait(short event, Clock::time_point until) const;

  socket_t socket_;
  const std::atomic<bool>& ending_;
  std::chrono::milliseconds send_;
  Clock::time_point receive_until_;
  mutable Clock::time_point send_until_ = {};  // from the first byte of the answer on
  std::size_t bytes_left_;
  std::array<char, 4096> buffer_ = {};
  std::size_t begin_ = 0, end_ = 0;
};

// A fixed number of threads, and a fixed number of connections that wait for one. Those beyond are
// served at once, by a word of refusal: refusing() says so while they are.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(const Limits& limits);
  ~ConnectionThreads() override { shutdown(); }

  void enqueue(std::function<void()> serve) override;
  void shutdown() override;

  static bool refusing();

 private:
  void work();

  std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace filigree::serve
