#include "serve/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"

namespace filigree::serve {

using Clock = std::chrono::steady_clock;

struct Jobs::Job {
  std::string number = {};
  Json about = {};
  JobState state = JobState::kRunning;
  bool cancelled = false;
  Clock::time_point asked = Clock::now();  // for it, last
  study::Work work = {};                   // the piece at hand
  std::int64_t done = 0;
  std::string metric = {};
  Json curves = Json::object();  // label: [[x, y], ...]
  JobResult result = {};
  std::string error = {};
  std::thread thread = {};
};

class Jobs::Report final : public study::WorkReport {
 public:
  Report(Jobs& jobs, Job& job, const study::Work& work) : jobs_(jobs), job_(job) {
    const std::lock_guard lock(jobs_.mutex_);
    job_.work = work;
    job_.done = work.already_done;
    job_.metric.clear();
  }
  void update(std::int64_t done, std::string_view metric) override {
    const std::lock_guard lock(jobs_.mutex_);
    job_.done = done;
    job_.metric = metric;
  }
  void finish() override {
    const std::lock_guard lock(jobs_.mutex_);
    job_.done = std::max(job_.done, job_.work.total);
  }

 private:
  Jobs& jobs_;
  Job& job_;
};

Jobs::Jobs(const Limits& limits) : limits_(limits) {}

Jobs::~Jobs() {
  {
    const std::lock_guard lock(mutex_);
    for (Job& job : jobs_) job.cancelled = true;
  }
  for (Job& job : jobs_) job.thread.join();
}

// Under the lock, as what follows. A thread whose job is over has left the lock for good.
void Jobs::make_room() {
  const auto over = [](const Job& job) { return job.state != JobState::kRunning; };
  const auto running = static_cast<std::size_t>(
      std::count_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return !over(job); }));
  if (running >= limits_.running_jobs)
    throw Refusal(503, fmt::format("{} jobs are running", running),
                  "wait for one of them or cancel it");
  while (jobs_.size() >= limits_.kept_jobs) {
    const auto oldest = std::find_if(jobs_.begin(), jobs_.end(), over);
    oldest->thread.join();
    jobs_.erase(oldest);
  }
}

Json Jobs::start(const Json& about, study::Context context, Work work) {
  const std::lock_guard lock(mutex_);
  make_room();
  Job& job = jobs_.emplace_back();
  job.number = std::to_string(next_++);
  job.about = about;
  context.watch = [this, &job](const study::Work& piece) {
    return std::make_unique<Report>(*this, job, piece);
  };
  context.point = [this, &job](const std::string& label, double x, double y) {
    const std::lock_guard inner(mutex_);
    Json& curve = job.curves[label];
    // A point that more was measured of comes once more.
    for (Json& there : curve)
      if (there[0] == x) {
        there[1] = y;
        return;
      }
    curve.push_back({x, y});
  };
  context.stop = [this, &job] {
    const std::lock_guard inner(mutex_);
    return job.cancelled || Clock::now() - job.asked > limits_.abandoned_job;
  };
  try {
    job.thread =
        std::thread([this, &job, context, work = std::move(work)] { run(job, context, work); });
  } catch (const std::system_error&) {
    jobs_.pop_back();
    throw Refusal(503, "the system gives no thread for the job", "ask again in a moment");
  }
  return json_of(job, false);
}

void Jobs::run(Job& job, study::Context context, const Work& work) {
  JobState state = JobState::kDone;
  JobResult result;
  std::string error;
  try {
    const OwnWork own;
    result = work(context);
  } catch (const study::Stopped&) {
    state = JobState::kCancelled;
  } catch (const Error& failure) {
    state = JobState::kFailed, error = failure.what();
  } catch (const Refusal& refusal) {
    state = JobState::kFailed, error = fmt::format("{}; {}", refusal.what(), refusal.remedy());
  } catch (const std::bad_alloc&) {
    state = JobState::kFailed, error = "there is not enough memory for the job";
  } catch (const std::exception&) {
    state = JobState::kFailed, error = "the job failed";
  }
  const std::lock_guard lock(mutex_);
  job.state = state;
  job.result = std::move(result);
  job.error = std::move(error);
}

Jobs::Job& Jobs::find(const std::string& number) {
  for (Job& job : jobs_)
    if (job.number == number) {
      job.asked = Clock::now();
      return job;
    }
  throw Refusal(404, fmt::format("there is no job {}", printable(number)),
                "GET /api/jobs lists those there are");
}

Json Jobs::json_of(const Job& job, bool with_result) {
  Json json = {{"job", job.number},
               {"state", name_of(job.state)},
               {"request", job.about},
               {"progress",
                {{"label", job.work.label},
                 {"unit", job.work.unit},
                 {"done", job.done},
                 {"total", job.work.total},
                 {"metric", job.metric}}},
               {"error", job.error.empty() ? Json() : Json(job.error)}};
  if (with_result) json["curves"] = job.curves, json["result"] = job.result.json;
  return json;
}

Json Jobs::describe(const std::string& number) {
  const std::lock_guard lock(mutex_);
  return json_of(find(number), true);
}

JobResult Jobs::result(const std::string& number) {
  const std::lock_guard lock(mutex_);
  const Job& job = find(number);
  if (job.state != JobState::kDone)
    throw Refusal(409, fmt::format("job {} is {}", number, name_of(job.state)),
                  "wait until it is done");
  return job.result;
}

Json Jobs::list() {
  const std::lock_guard lock(mutex_);
  Json all = Json::array();
  for (const Job& job : jobs_) all.push_back(json_of(job, false));
  return {{"jobs", all}};
}

Json Jobs::cancel(const std::string& number) {
  const std::lock_guard lock(mutex_);
  Job& job = find(number);
  job.cancelled = true;
  const Json json = json_of(job, false);
  if (job.state != JobState::kRunning) {
    job.thread.join();
    jobs_.remove_if([&](const Job& other) { return &other == &job; });
  }
  return json;
}

}  // namespace filigree::serve
