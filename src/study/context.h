// What a study is given besides its request: the seed, where models compute, the processes that
// share the work, and whoever watches it. Everything has a default, so that `Context()` is a quiet
// run on the CPU. A study never prints: what there is to say goes through here or into its result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dist/communicator.h"
#include "model/placement.h"

namespace filigree::study {

// A request that makes no sense, whatever the models and files are: values that do not go together.
class RequestError : public Error {
 public:
  using Error::Error;
};

// Thrown between two steps of work once Context::stop says so.
struct Stopped {};

// A piece of work that can be counted.
struct Work {
  std::string label;              // "dense scores"
  std::string unit;               // what is counted, in the plural
  std::int64_t total = 0;         // 0: unknown
  std::int64_t already_done = 0;  // where resumed work starts
};

// How far a piece of work is. Ends with the object.
class WorkReport {
 public:
  virtual ~WorkReport() = default;
  // `metric` is one number of interest, such as "loss 3.214". Cheap, so call it for every unit.
  virtual void update(std::int64_t done, std::string_view metric = {}) = 0;
  // All of it was done.
  virtual void finish() = 0;
};

struct Context {
  std::uint64_t seed = 0;  // of everything random
  Placement placement = {};
  Communicator* ranks = nullptr;  // null: this process alone
  // Each may be empty: nobody watches, asks for an end or listens.
  std::function<std::unique_ptr<WorkReport>(const Work&)> watch = {};
  std::function<bool()> stop = {};
  std::function<void(const std::string&)> note = {};  // a sentence worth reading, not an error
  // A point more of a curve that is being measured, by whose curve it is.
  std::function<void(const std::string& label, double x, double y)> point = {};

  // Never null.
  std::unique_ptr<WorkReport> begin(const Work& work) const;
  void say(const std::string& sentence) const;
  bool stopping() const { return stop && stop(); }
  void throw_if_stopped() const;
  Communicator& communicator() const;
  // Whether this process writes what the study writes to disk.
  bool writes() const { return communicator().first(); }
};

}  // namespace filigree::study
