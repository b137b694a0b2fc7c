// Warnings reach the installed handler, one at a time, and never deadlock.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "filigree/error.h"

namespace filigree {
namespace {

// Installs a handler for one test and puts the previous one back.
class HandlerScope {
 public:
  explicit HandlerScope(WarningHandler handler)
      : previous_(set_warning_handler(std::move(handler))) {}
  ~HandlerScope() { set_warning_handler(std::move(previous_)); }
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;

 private:
  WarningHandler previous_;
};

TEST(Log, WithoutAHandlerAWarningIsDropped) {
  HandlerScope scope(nullptr);
  warn("nobody hears {}", "this");
}

TEST(Log, TheHandlerGetsTheFormattedMessage) {
  std::vector<std::string> messages;
  HandlerScope scope([&](const std::string& message) { messages.push_back(message); });
  warn("{} NaN in '{}'", 3, "wte");
  EXPECT_EQ(messages, std::vector<std::string>{"3 NaN in 'wte'"});
}

TEST(Log, InstallingReturnsThePreviousHandler) {
  int calls = 0;
  HandlerScope scope([&](const std::string&) { ++calls; });
  WarningHandler first = set_warning_handler(nullptr);
  warn("dropped");
  EXPECT_EQ(calls, 0);
  set_warning_handler(std::move(first));
  warn("counted");
  EXPECT_EQ(calls, 1);
}

TEST(Log, AWarningFromAHandlerIsDropped) {
  int calls = 0;
  HandlerScope scope([&](const std::string&) {
    ++calls;
    warn("from the handler");
  });
  warn("from outside");
  EXPECT_EQ(calls, 1);
}

TEST(Log, AHandlerThatThrowsLeavesTheNextWarningUsable) {
  int calls = 0;
  HandlerScope scope([&](const std::string&) {
    if (++calls == 1) throw std::runtime_error("handler");
  });
  EXPECT_THROW(warn("first"), std::runtime_error);
  warn("second");
  EXPECT_EQ(calls, 2);
}

TEST(Log, HandlersRunOneAtATime) {
  int calls = 0;  // not atomic on purpose: ThreadSanitizer would report two handlers at once
  HandlerScope scope([&](const std::string&) { ++calls; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 100; ++j) warn("thread");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 400);
}

}  // namespace
}  // namespace filigree
