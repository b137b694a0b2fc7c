// One model, many who ask: one request runs at a time, the others wait in the order they came, and
// beyond a number of them nobody waits. A model may be run from several threads; but then a burst
// of requests would hold as much memory as all of them together, and the first would be as late as
// the last.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace filigree::serve {

class ModelQueue {
 public:
  explicit ModelQueue(std::size_t most_waiting) : most_waiting_(most_waiting) {}

  // Waits for the turn and holds it while `work` runs, as a piece of work of its own: models that
  // are asked at the same time have a thread each. Throws Refusal when too many wait already,
  // and study::Stopped when `gone` says that nobody wants the answer any more.
  void run(const std::function<bool()>& gone, const std::function<void()>& work);

 private:
  class Ticket;

  std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> line_;  // the first has the turn
  std::uint64_t next_ = 0;
};

}  // namespace filigree::serve
