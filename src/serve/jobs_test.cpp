// Jobs and turns: order, bounds, ends.
#include "serve/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "filigree/error.h"
#include "serve/model_queue.h"

namespace filigree::serve {
namespace {

Json wait_while_running(Jobs& jobs, const std::string& number) {
  while (true) {
    const Json job = jobs.describe(number);
    if (job["state"] != "running") return job;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int status_of(const std::function<void()>& refused) {
  try {
    refused();
  } catch (const Refusal& refusal) {
    return refusal.status();
  }
  return 200;
}

// Until it is told to stop.
JobResult endless(const study::Context& context) {
  while (true) {
    context.throw_if_stopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Jobs, ShowCurvesPointByPoint) {
  Jobs jobs{Limits()};
  std::promise<void> seen;
  const Json started = jobs.start({}, {}, [&](const study::Context& context) {
    context.point("dense", 4, 0.5);
    context.point("dense", 8, 0.75);
    seen.get_future().wait();
    context.point("dense", 4, 0.625);  // with more prompts
    context.point("sparse", 4, 1);
    return JobResult{};
  });
  const std::string number = started["job"];
  while (jobs.describe(number)["curves"]["dense"].size() < 2) std::this_thread::yield();
  EXPECT_EQ(jobs.describe(number)["curves"], Json({{"dense", {{4.0, 0.5}, {8.0, 0.75}}}}));
  seen.set_value();
  EXPECT_EQ(wait_while_running(jobs, number)["curves"],
            Json({{"dense", {{4.0, 0.625}, {8.0, 0.75}}}, {"sparse", Json::array({{4.0, 1.0}})}}));
}

TEST(Jobs, ShowProgressAndKeepTheResult) {
  Jobs jobs{Limits()};
  std::promise<void> seen;
  const Json started = jobs.start({{"task", "ioi"}}, {}, [&](const study::Context& context) {
    const auto report = context.begin({"scores", "runs", 10});
    report->update(4, "loss 1");
    seen.get_future().wait();
    report->finish();
    return JobResult{Json{{"answer", 42}}};
  });
  const std::string number = started["job"];
  while (jobs.describe(number)["progress"]["done"] != 4) std::this_thread::yield();
  const Json running = jobs.describe(number);
  EXPECT_EQ(running["state"], "running");
  EXPECT_EQ(running["progress"]["label"], "scores");
  EXPECT_EQ(running["progress"]["total"], 10);
  EXPECT_EQ(running["progress"]["metric"], "loss 1");
  seen.set_value();
  const Json done = wait_while_running(jobs, number);
  EXPECT_EQ(done["state"], "done");
  EXPECT_EQ(done["request"]["task"], "ioi");
  EXPECT_EQ(done["result"]["answer"], 42);
  EXPECT_FALSE(jobs.list()["jobs"][0].contains("result"));
  jobs.cancel(number);
  EXPECT_EQ(status_of([&] { jobs.describe(number); }), 404) << "what is over is forgotten";
}

TEST(Jobs, AreCancelledAndFailWithTheirReason) {
  Jobs jobs{Limits()};
  const std::string one = jobs.start({}, {}, endless)["job"];
  jobs.cancel(one);
  EXPECT_EQ(wait_while_running(jobs, one)["state"], "cancelled");
  const std::string two =
      jobs.start({}, {}, [](const study::Context&) -> JobResult { fail("no such luck"); })["job"];
  const Json failed = wait_while_running(jobs, two);
  EXPECT_EQ(failed["state"], "failed");
  EXPECT_EQ(failed["error"], "no such luck");
}

TEST(Jobs, AreBoundedInNumber) {
  Limits limits;
  limits.running_jobs = 1;
  limits.kept_jobs = 2;
  Jobs jobs(limits);
  const std::string first = jobs.start({}, {}, endless)["job"];
  EXPECT_EQ(status_of([&] { jobs.start({}, {}, endless); }), 503);
  jobs.cancel(first);
  wait_while_running(jobs, first);
  for (int n = 0; n < 3; ++n)
    wait_while_running(
        jobs, jobs.start({}, {}, [](const study::Context&) { return JobResult(); })["job"]);
  EXPECT_EQ(jobs.list()["jobs"].size(), 2u);
  EXPECT_EQ(status_of([&] { jobs.describe(first); }), 404);
  jobs.start({}, {}, endless);  // ends with the jobs
}

TEST(Jobs, EndWhenNobodyAsksForThem) {
  Limits limits;
  limits.abandoned_job = std::chrono::milliseconds(5);
  Jobs jobs(limits);
  const std::string number = jobs.start({}, {}, endless)["job"];
  while (jobs.list()["jobs"][0]["state"] == "running") std::this_thread::yield();  // asks for none
  EXPECT_EQ(jobs.describe(number)["state"], "cancelled");
}

TEST(ModelQueue, ComeInOrderUpToABound) {
  ModelQueue turns(2);
  std::promise<void> begun, end;
  std::vector<int> order;
  std::thread first([&] {
    turns.run({}, [&] {
      begun.set_value();
      end.get_future().wait();
      order.push_back(1);
    });
  });
  begun.get_future().wait();
  // One that nobody waits for leaves the line, and its place is free again.
  EXPECT_THROW(turns.run([] { return true; }, [&] { order.push_back(0); }), study::Stopped);
  std::atomic<int> in_line = 0;
  const auto waiter = [&](int number) {
    return std::thread([&, number] {
      turns.run(
          [&, counted = false]() mutable {
            if (!counted) ++in_line;
            counted = true;
            return false;
          },
          [&] { order.push_back(number); });
    });
  };
  std::thread second = waiter(2);
  while (in_line < 1) std::this_thread::yield();
  std::thread third = waiter(3);
  while (in_line < 2) std::this_thread::yield();
  EXPECT_EQ(status_of([&] { turns.run({}, [&] { order.push_back(4); }); }), 503);
  end.set_value();
  for (std::thread* thread : {&first, &second, &third}) thread->join();
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace filigree::serve
