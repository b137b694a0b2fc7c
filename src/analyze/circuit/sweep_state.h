// What a long sweep has done so far, in a file, so that an interrupted one goes on where it stopped
// and ends with the same bits.
//
// A file holds sections, one a sweep, each under a name and a key: a hash of everything that its
// numbers depend on (model, prompts, options). A section whose key is another belongs to another
// sweep and is refused, as is a file that is damaged. The file is replaced as a whole, so a crash
// leaves the last state that was saved.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/task/prompt.h"
#include "model/model.h"

namespace filigree {

// A 64-bit hash of a sequence of values; the same on every machine.
class SweepKey {
 public:
  SweepKey& add(std::uint64_t number);
  SweepKey& add(std::string_view text);
  // Configuration, parameters, gate biases and adapters.
  SweepKey& add(const Model& model);
  SweepKey& add(const std::vector<TaskPrompt>& prompts);
  std::uint64_t value() const { return hash_; }

 private:
  void mix(std::span<const std::byte> bytes);
  std::uint64_t hash_ = 0x9E3779B97F4A7C15u;
};

class SweepState;

// One sweep's part of the file.
class SweepSection {
 public:
  // Steps are numbered in the order in which sweeps ask for them, also over several sweeps: work
  // that is repeated from the start asks for the same ones again.
  std::size_t next_step() { return next_++; }
  const std::vector<double>* find(std::size_t step) const;
  // Keeps a step's values and saves the file now and then.
  void add(std::size_t step, std::vector<double> values);
  std::size_t steps() const { return steps_.size(); }

 private:
  friend class SweepState;
  SweepState* state_ = nullptr;
  std::uint64_t key_ = 0;
  std::size_t next_ = 0;
  std::map<std::size_t, std::vector<double>> steps_;
};

class SweepState {
 public:
  // Reads the file if there is one. Throws Error for one that is not a sweep state or is damaged.
  // Of several ranks that share a sweep all read it and one writes.
  explicit SweepState(std::filesystem::path path, bool writes = true);
  SweepState(const SweepState&) = delete;
  SweepState& operator=(const SweepState&) = delete;

  // The section of that name, new or as the file has it; valid as long as the state. Throws Error
  // when the file's section has another key.
  SweepSection& section(const std::string& name, std::uint64_t key);

  void save();                // does nothing where another rank writes
  std::size_t steps() const;  // of all sections

 private:
  friend class SweepSection;
  void read(std::string_view bytes);
  void save_now_and_then();

  std::filesystem::path path_;
  bool writes_;
  std::map<std::string, SweepSection> sections_;
  std::optional<std::chrono::steady_clock::time_point> last_save_;
};

}  // namespace filigree
