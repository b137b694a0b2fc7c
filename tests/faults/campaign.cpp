// The fault campaign: each command is interrupted at each of its file operations, in each way, and
// run again; the result must be that of a run that nothing happened to. docs/reliability.md.
//
//   campaign --program FILE [--shim FILE] [--part NAME] [--scenario NAME] [--stride N] [--kills N]
//            [--rounds N]
//
// Parts: points (one operation goes wrong), reads (one look at a file fails, or all from it on),
// links (planted in the folder), writers (two at once), kills (at random moments), power (power
// cuts), memory (one allocation fails; without a shim in a program that sees to that by itself). A
// stride of N takes every N-th point, beginning elsewhere in every series.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/scratch_folder.h"
#include "filigree/error.h"
#include "filigree/random.h"
#include "tests/faults/parts.h"
#include "tests/faults/power_cut.h"
#include "tests/faults/scenarios.h"

namespace filigree::faults {

void Tally::count(const std::string& where, const std::string& problem) {
  ++runs;
  if (problem.empty()) return;
  ++failures;
  fmt::print("FAILED {}: {}\n", where, problem);
  std::fflush(stdout);
}

namespace {

struct Options {
  fs::path program, shim;
  std::string part, scenario;
  long stride = 1;
  long kills = 100;
  long rounds = 60;  // of two writers
};

class Campaign {
 public:
  Campaign(const Options& options, const Place& place) : options_(options), place_(place) {}

  int run() {
    const std::vector<Scenario> scenarios = make_scenarios(place_);
    for (const Scenario& scenario : scenarios) {
      if (!chosen(scenario)) continue;
      const Expected expected = undisturbed(scenario, place_);
      if (wants("points")) points(scenario, expected);
      if (wants("reads")) reads(scenario, expected);
      if (wants("links")) links(scenario, expected);
      if (wants("writers") && scenario.rival) writers(scenario, expected);
      if (wants("kills")) kills(scenario, expected);
      if (wants("power") && !scenario.before) power(scenario, expected);
      if (wants("memory")) memory(scenario, expected);
    }
    if (wants("reads"))
      for (const Scenario& scenario : make_reading_scenarios(place_))
        if (chosen(scenario)) reads(scenario, undisturbed(scenario, place_));
    if (wants("writers"))
      for (const Scenario& scenario : make_mixed_pairs(place_))
        if (chosen(scenario)) writers(scenario, undisturbed(scenario, place_));
    fmt::print("{} interrupted runs, {} failures\n", all_.runs, all_.failures);
    return all_.failures == 0 ? 0 : 1;
  }

 private:
  bool wants(const char* part) const { return options_.part.empty() || options_.part == part; }
  bool chosen(const Scenario& scenario) const {
    return options_.scenario.empty() || scenario.name == options_.scenario;
  }

  void report(const Scenario& scenario, const std::string& what, const Tally& tally) {
    fmt::print("{:<16} {:<28} {:>5} runs, {} failures\n", scenario.name, what, tally.runs,
               tally.failures);
    std::fflush(stdout);
    all_.runs += tally.runs;
    all_.failures += tally.failures;
  }

  long stride(const Scenario& scenario) const {
    return options_.stride == 1 ? 1 : options_.stride * scenario.fewer;
  }
  // Each series has one point at least.
  long first_point(const Scenario& scenario, long count) {
    return 1 + (series_++ * 5) % std::min(stride(scenario), std::max(1L, count));
  }

  // Whether the run ended as the fault asks for; what it must be otherwise.
  static std::string wrong_end_of(const Scenario& scenario, const Ended& ended, bool killed) {
    if (killed && !ended.timed_out)
      return ended.signal == SIGKILL ? "" : "it was not killed: " + ended.said;
    return wrong_end(scenario, ended);
  }

  void reads(const Scenario& scenario, const Expected& expected) {
    const long count = count_looks(scenario, place_);
    for (const char* kind : {"read", "reads"})
      report(scenario, fmt::format("{} failing at {} looks", kind, count),
             fail_reads(scenario, expected, place_, kind, count,
                        {first_point(scenario, count), stride(scenario)}));
  }

  void links(const Scenario& scenario, const Expected& expected) {
    report(scenario, "links", plant_links(scenario, expected, place_, {1, stride(scenario)}));
  }

  void writers(const Scenario& scenario, const Expected& expected) {
    report(scenario, "two at once", two_writers(scenario, expected, place_, options_.rounds));
  }

  void points(const Scenario& scenario, const Expected& expected) {
    const long count = place_.operations(scenario.command(fresh_folder(scenario, place_)),
                                         place_.scratch / "out", "");
    for (const char* kind : {"kill", "torn", "short", "enospc", "eio", "eacces"}) {
      Tally tally;
      const bool kill = std::strcmp(kind, "kill") == 0, torn = std::strcmp(kind, "torn") == 0;
      for (long point = first_point(scenario, count); point <= count; point += stride(scenario)) {
        const fs::path out = fresh_folder(scenario, place_);
        const Ended ended = place_.run({scenario.command(out),
                                        {{"FAULTS_UNDER", (place_.scratch / "out").string()},
                                         {"FAULTS_AT", std::to_string(point)},
                                         {"FAULTS_KIND", kind}}});
        // Only writes are torn: elsewhere nothing happens.
        std::string problem = wrong_end_of(scenario, ended, kill || (torn && ended.signal != 0));
        if (problem.empty()) problem = recover(scenario, place_, out, expected);
        tally.count(fmt::format("{}: {} at operation {} of {}", scenario.name, kind, point, count),
                    problem);
      }
      report(scenario, fmt::format("{} at {} operations", kind, count), tally);
    }
  }

  void kills(const Scenario& scenario, const Expected& expected) {
    Tally tally;
    Random random(7);
    // Until it is killed no more, a run is resumed after every kill.
    const auto begun = std::chrono::steady_clock::now();
    place_.run({scenario.command(fresh_folder(scenario, place_))});
    const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begun);
    while (tally.runs < options_.kills) {
      const fs::path out = fresh_folder(scenario, place_);
      Arguments arguments = scenario.command(out);
      for (int round = 0; round < 4 && !arguments.empty() && tally.runs < options_.kills; ++round) {
        const auto after = std::chrono::milliseconds(
            1 + random.below(static_cast<std::uint32_t>(std::max<long>(2, whole.count()))));
        const Ended ended = place_.run({arguments, {}, after});
        if (ended.signal == 0) break;
        tally.count(fmt::format("{}: killed after {} ms", scenario.name, after.count()),
                    half_things(out));
        arguments = scenario.again(out);
      }
      if (std::string problem = recover(scenario, place_, out, expected); !problem.empty())
        tally.count(fmt::format("{}: after random kills", scenario.name), problem);
    }
    report(scenario, "random kills", tally);
  }

  void power(const Scenario& scenario, const Expected& expected) {
    const fs::path file = place_.scratch / "trace";
    fs::remove(file);
    const fs::path out = fresh_folder(scenario, place_);
    place_.run(
        {scenario.command(out), {{"FAULTS_UNDER", out.string()}, {"FAULTS_TRACE", file.string()}}});
    const std::vector<Operation> trace = read_trace(file);
    const Tree whole = after_power_cut(trace, trace.size(), out, Survives::kEverything, 0);
    require(whole == read_tree(out), "{}: the trace does not give the folder", scenario.name);
    const std::pair<Survives, const char*> ways[] = {{Survives::kFlushed, "flushed only"},
                                                     {Survives::kNames, "names, flushed bytes"},
                                                     {Survives::kSome, "some of the rest"}};
    for (const auto& [survives, name] : ways) {
      Tally tally;
      Tree before;
      for (auto count =
               static_cast<std::size_t>(first_point(scenario, static_cast<long>(trace.size())));
           count <= trace.size(); count += static_cast<std::size_t>(stride(scenario))) {
        Tree left = after_power_cut(trace, count, out, survives, count);
        if (tally.runs > 0 && left == before) continue;  // was tried
        write_tree(fresh_folder(scenario, place_), left);
        tally.count(fmt::format("{}: power cut after {} of {} operations, {}", scenario.name, count,
                                trace.size(), name),
                    recover(scenario, place_, out, expected));
        before = std::move(left);
      }
      report(scenario, fmt::format("power cuts, {}", name), tally);
    }
  }

  void memory(const Scenario& scenario, const Expected& expected) {
    const long count = place_.operations(scenario.command(fresh_folder(scenario, place_)),
                                         place_.scratch, "memory");
    Tally tally;
    // Allocations are many; there are as many points as operations in the other parts.
    const long step = std::max(1L, count * stride(scenario) / 400);
    for (long point = 1 + (series_++ * 5) % step; point <= count; point += step) {
      const fs::path out = fresh_folder(scenario, place_);
      const Ended ended = place_.run({scenario.command(out),
                                      {{"FAULTS_UNDER", place_.scratch.string()},
                                       {"FAULTS_AT", std::to_string(point)},
                                       {"FAULTS_KIND", "memory"}}});
      std::string problem = wrong_end(scenario, ended);
      if (problem.empty()) problem = recover(scenario, place_, out, expected);
      tally.count(fmt::format("{}: no memory at allocation {} of {}", scenario.name, point, count),
                  problem);
    }
    report(scenario, fmt::format("no memory, {} allocations", count), tally);
  }

  const Options& options_;
  const Place& place_;
  Tally all_;
  long series_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--program")
      options.program = value;
    else if (name == "--shim")
      options.shim = value;
    else if (name == "--part")
      options.part = value;
    else if (name == "--scenario")
      options.scenario = value;
    else if (name == "--stride")
      options.stride = std::max(1L, std::stol(value));
    else if (name == "--kills")
      options.kills = std::stol(value);
    else if (name == "--rounds")
      options.rounds = std::stol(value);
    else
      fail("there is no option {}", name);
  }
  require(fs::exists(options.program), "--program must name a file");
  require(fs::exists(options.shim) || (options.shim.empty() && options.part == "memory"),
          "--shim must name a file");
  return options;
}

}  // namespace
}  // namespace filigree::faults

int main(int argc, char** argv) {
  using namespace filigree;
  try {
    const faults::Options options = faults::parse(argc, argv);
    const ScratchFolder scratch;
    const faults::Place place{options.program, options.shim,
                              std::filesystem::canonical(scratch.path())};
    return faults::Campaign(options, place).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "campaign: {}\n", error.what());
    return 2;
  }
}
