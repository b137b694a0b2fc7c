// The two ends of a request that is there as a whole: the stream that httplib reads it from and
// writes its answer to, and the threads that answer.
#pragma once

#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/request_limits.h"

namespace filigree::serve {

// Reads from memory and writes to a socket, with one deadline for the whole answer: a client that
// takes a byte now and then is cut off as one that takes nothing.
class RequestStream final : public httplib::Stream {
 public:
  RequestStream(socket_t socket, std::string request, const Limits& limits);

  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override;
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Whether the client has closed its side.
  bool gone() const;

 private:
  using Clock = std::chrono::steady_clock;

  socket_t socket_;
  std::string request_;
  std::size_t read_ = 0;
  std::chrono::milliseconds send_;
  mutable Clock::time_point send_until_ = {};  // from the first byte of the answer on
};

// A fixed number of threads, and a fixed number of requests that wait for one.
class RequestThreads {
 public:
  explicit RequestThreads(const Limits& limits);
  ~RequestThreads() { end(); }
  RequestThreads(const RequestThreads&) = delete;
  RequestThreads& operator=(const RequestThreads&) = delete;

  // False where too many wait already.
  bool enqueue(std::function<void()> serve);
  // Waits for all that were taken.
  void end();

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
