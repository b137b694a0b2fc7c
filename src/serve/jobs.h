// Long work that goes on behind the page: started, asked about, cancelled. Each runs in a thread of
// its own, and its result is kept until others push it out or the server ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "filigree/names.h"
#include "filigree/study.h"
#include "serve/answer.h"
#include "serve/job_result.h"
#include "serve/request_limits.h"

namespace filigree::serve {

enum class JobState { kRunning, kDone, kFailed, kCancelled };

class Jobs {
 public:
  // Gets a context that counts its work and is told to stop.
  using Work = std::function<JobResult(const study::Context&)>;

  explicit Jobs(const Limits& limits);
  ~Jobs();  // stops all of them and waits
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Throws Refusal when too many are running. `about` is what was asked for, shown with the job.
  // `context` has what work needs besides; its watcher and stop are replaced.
  Json start(const Json& about, study::Context context, Work work);

  // Number, state, progress, and result or error. Throws Refusal when there is none of this number.
  Json describe(const std::string& number);
  // What a job has left; throws Refusal while it runs and where it failed.
  JobResult result(const std::string& number);
  // All, without results.
  Json list();
  // What runs is told to stop; what is over is forgotten.
  Json cancel(const std::string& number);

 private:
  struct Job;
  class Report;

  Job& find(const std::string& number);
  void make_room();
  void run(Job& job, study::Context context, const Work& work);
  static Json json_of(const Job& job, bool with_result);

  Limits limits_;
  std::mutex mutex_;
  std::list<Job> jobs_;
  std::uint64_t next_ = 1;
};

}  // namespace filigree::serve

namespace filigree {

template <>
inline constexpr auto kNames<serve::JobState> =
    std::to_array<Named<serve::JobState>>({{serve::JobState::kRunning, "running"},
                                           {serve::JobState::kDone, "done"},
                                           {serve::JobState::kFailed, "failed"},
                                           {serve::JobState::kCancelled, "cancelled"}});

}  // namespace filigree
