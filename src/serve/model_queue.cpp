#include "serve/model_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "filigree/runtime.h"
#include "filigree/study.h"
#include "serve/answer.h"

namespace filigree::serve {

// A place in the line, given up whatever happens.
class ModelQueue::Ticket {
 public:
  explicit Ticket(ModelQueue& turns) : queue_(turns) {
    const std::lock_guard lock(queue_.mutex_);
    if (queue_.line_.size() > queue_.most_waiting_)
      throw Refusal(503, fmt::format("{} requests wait for this model", queue_.most_waiting_),
                    "ask again in a moment");
    number_ = queue_.next_++;
    queue_.line_.push_back(number_);
  }
  ~Ticket() {
    {
      const std::lock_guard lock(queue_.mutex_);
      queue_.line_.erase(std::find(queue_.line_.begin(), queue_.line_.end(), number_));
    }
    queue_.changed_.notify_all();
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  void wait(const std::function<bool()>& gone) {
    std::unique_lock lock(queue_.mutex_);
    while (!queue_.changed_.wait_for(lock, std::chrono::milliseconds(20),
                                     [&] { return queue_.line_.front() == number_; }))
      if (gone && gone()) throw study::Stopped();
  }

 private:
  ModelQueue& queue_;
  std::uint64_t number_ = 0;
};

void ModelQueue::run(const std::function<bool()>& gone, const std::function<void()>& work) {
  Ticket place(*this);
  place.wait(gone);
  const OwnWork own;
  work();
}

}  // namespace filigree::serve
