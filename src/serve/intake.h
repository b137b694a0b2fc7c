// Connections from when they are accepted to when a whole request is there, and again from the end
// of the answer to when the client has gone. One thread watches all of them, so that a client which
// says nothing, or half of something, takes none of the threads that answer. There is room for a
// number of connections and bytes; a new one makes the oldest give way.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "serve/answer.h"
#include "serve/request_limits.h"

namespace filigree::serve {

class Intake {
 public:
  // What the first line and the headers of a request ask for: so many bytes of a body to wait for,
  // or the answer that refuses it.
  using Begin = std::function<std::variant<std::size_t, Answer>(std::string_view head)>;
  // Takes over a socket with its whole request; false where nobody has time for it.
  using Serve = std::function<bool(int socket, std::string request)>;

  // Both functions are called by the watching thread and must not wait.
  Intake(const Limits& limits, Begin begin, Serve serve);
  ~Intake() { end(); }
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // A connection that was accepted. Any thread may call it, as the next one.
  void take(int socket);
  // One whose answer was written: says so to the client and takes, for a moment, what that still
  // sends, since closing a socket with unread bytes would throw the answer away before it is read.
  void finish(int socket);

  // Closes all connections. Those that come later are closed at once.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  struct Waiting {
    int socket = -1;
    Clock::time_point until = {};
    bool finishing = false;
    std::string bytes = {};     // that came
    std::size_t searched = 0;   // of them, for the end of the head
    std::size_t whole = 0;      // bytes of the request; 0: its head is not there yet
    std::size_t discarded = 0;  // of one that is finishing
  };

  void add(Waiting connection);
  void wake() const;
  void watch();
  // False when the connection is no longer watched.
  bool came(Waiting& connection);
  bool view_prompt(Waiting& connection);
  bool refuse(Waiting& connection, const Answer& answer);
  void make_room();

  Limits limits_;
  Begin begin_;
  Serve serve_;
  std::mutex mutex_;
  std::vector<Waiting> added_;  // not watched yet
  std::list<Waiting> watched_;  // oldest first
  std::atomic<bool> ending_ = false;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace filigree::serve
