#include "serve/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "filigree/runtime.h"
#include "filigree/study.h"
#include "serve/answer.h"

namespace filigree::serve {

// A place in the line, given up whatever happens.
class Turns::Place {
 public:
  explicit Place(Turns& turns) : turns_(turns) {
    const std::lock_guard lock(turns_.mutex_);
    if (turns_.line_.size() > turns_.most_waiting_)
      throw Refusal(503, fmt::format("{} requests wait for this model", turns_.most_waiting_),
                    "ask again in a moment");
    number_ = turns_.next_++;
    turns_.line_.push_back(number_);
  }
  ~Place() {
    {
      const std::lock_guard lock(turns_.mutex_);
      turns_.line_.erase(std::find(turns_.line_.begin(), turns_.line_.end(), number_));
    }
    turns_.changed_.notify_all();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void wait(const std::function<bool()>& gone) {
    std::unique_lock lock(turns_.mutex_);
    while (!turns_.changed_.wait_for(lock, std::chrono::milliseconds(20),
                                     [&] { return turns_.line_.front() == number_; }))
      if (gone && gone()) throw study::Stopped();
  }

 private:
  Turns& turns_;
  std::uint64_t number_ = 0;
};

void Turns::run(const std::function<bool()>& gone, const std::function<void()>& work) {
  Place place(*this);
  place.wait(gone);
  const OwnWork own;
  work();
}

}  // namespace filigree::serve
