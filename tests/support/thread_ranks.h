// Ranks that are threads of one process, for tests of what several processes do together.
//
//   run_ranks(3, [&](Communicator& ranks) { ... });   // in three threads
//
// A rank that throws makes the others' calls throw too; run_ranks() rethrows what came first.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "filigree/error.h"
#include "filigree/ranks.h"

namespace filigree {

// Where the threads meet: the n-th message of every rank belongs to the n-th of all others.
class MeetingPoint {
 public:
  explicit MeetingPoint(int size) : size_(static_cast<std::size_t>(size)) {}

  void put(std::size_t number, std::vector<std::byte> message, int rank) {
    const std::lock_guard lock(mutex_);
    messages_[number][rank] = std::move(message);
    changed_.notify_all();
  }
  // What all ranks have put, in their order.
  std::vector<std::vector<std::byte>> take(std::size_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return messages_[number].size() == size_ || failed_; });
    require(messages_[number].size() == size_, "another rank has failed");
    std::vector<std::vector<std::byte>> all;
    for (const auto& [rank, message] : messages_[number]) all.push_back(message);
    return all;
  }
  void fail_all() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::map<int, std::vector<std::byte>>> messages_;
  bool failed_ = false;
};

class ThreadRanks : public Communicator {
 public:
  ThreadRanks(MeetingPoint& meeting, int rank, int size)
      : Communicator({rank, size, rank, size}), meeting_(meeting) {}

  using Communicator::broadcast;
  void sum(std::span<double> values) override {
    const std::size_t number = next_++;
    put(number, std::as_bytes(values));
    add_up(number, values);
  }
  std::unique_ptr<PendingSum> start_sum(std::vector<std::span<float>> arrays, DeviceKind) override {
    auto pending = std::make_unique<Pending>();
    pending->ranks = this;
    pending->number = next_;
    pending->arrays = std::move(arrays);
    for (const std::span<float> array : pending->arrays) put(next_++, std::as_bytes(array));
    return pending;
  }
  void all_gather(const std::vector<std::vector<std::span<float>>>& of_ranks, DeviceKind) override {
    for (std::size_t root = 0; root < of_ranks.size(); ++root)
      for (const std::span<float> array : of_ranks[root])
        take_from(root, std::as_writable_bytes(array));
  }
  void broadcast(std::span<std::byte> bytes) override { take_from(0, bytes); }
  bool all_failed(std::chrono::milliseconds) override { return false; }
  void abort(int) override { fail("aborted"); }

 private:
  struct Pending : PendingSum {
    void wait() override {
      for (const std::span<float> array : arrays) ranks->add_up(number++, array);
    }
    ThreadRanks* ranks = nullptr;
    std::size_t number = 0;
    std::vector<std::span<float>> arrays;
  };

  void put(std::size_t number, std::span<const std::byte> bytes) {
    meeting_.put(number, {bytes.begin(), bytes.end()}, rank());
  }

  // The bytes of rank `root`, which every rank has so many of.
  void take_from(std::size_t root, std::span<std::byte> bytes) {
    const std::size_t number = next_++;
    put(number, bytes);
    const std::vector<std::byte> from = meeting_.take(number)[root];
    require(from.size() == bytes.size(), "rank {} expects {} bytes, not {}", rank(), bytes.size(),
            from.size());
    std::copy(from.begin(), from.end(), bytes.begin());
  }

  template <typename T>
  void add_up(std::size_t number, std::span<T> values) {
    std::fill(values.begin(), values.end(), T{});
    for (const std::vector<std::byte>& message : meeting_.take(number)) {
      require(message.size() == values.size_bytes(), "the ranks sum arrays of {} and {} bytes",
              message.size(), values.size_bytes());
      for (std::size_t i = 0; i < values.size(); ++i) {
        T value;
        std::memcpy(&value, message.data() + i * sizeof(T), sizeof(T));
        values[i] += value;
      }
    }
  }

  MeetingPoint& meeting_;
  std::size_t next_ = 0;
};

inline void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  MeetingPoint meeting(size);
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadRanks ranks(meeting, rank, size);
        body(ranks);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        meeting.fail_all();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace filigree
