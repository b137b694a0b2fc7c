// Every command that computes says the same with --device cuda as with --device cpu.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/cli/tests/test_model.h"
#include "apps/cli/training/training_test_support.h"
#include "filigree/device.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"

namespace filigree::cli {
namespace {

// What may differ: times, and the device that a run says it had.
bool is_compared(const std::string& key) {
  return key.find("seconds") == std::string::npos && key != "device";
}

// Scores stand in their order, in which those that are nearly equal may change places, and curves
// have points where the search for a circuit looked. Elements of such lists are told by this key.
std::string key_of_elements(const nlohmann::json& list) {
  for (const char* key : {"part", "kept"})
    if (!list.empty() && list[0].is_object() && list[0].contains(key)) return key;
  return "";
}

nlohmann::json by_key(const nlohmann::json& list, const std::string& key) {
  nlohmann::json found = nlohmann::json::object();
  for (const nlohmann::json& element : list) found[element[key].dump()] = element;
  return found;
}

// What both have: the points of two curves at the same places.
nlohmann::json common(const nlohmann::json& points, const nlohmann::json& others) {
  nlohmann::json found = nlohmann::json::object();
  for (const auto& [key, value] : points.items())
    if (others.contains(key)) found[key] = value;
  return found;
}

// Adds the places at which the results differ, numbers by more than the tolerance (of one, or of
// themselves where they are larger).
void add_differences(const nlohmann::json& cpu, const nlohmann::json& gpu, double tolerance,
                     const std::string& place, std::vector<std::string>& found) {
  const auto differs = [&] {
    found.push_back(place + ": " + cpu.dump().substr(0, 80) + " and " + gpu.dump().substr(0, 80));
  };
  const std::string key = cpu.is_array() && gpu.is_array() ? key_of_elements(cpu) : "";
  if (cpu.is_number() && gpu.is_number()) {
    const double a = cpu.get<double>(), b = gpu.get<double>();
    if (!(std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a)))) differs();
  } else if (key == "part") {
    add_differences(by_key(cpu, key), by_key(gpu, key), tolerance, place, found);
  } else if (key == "kept") {
    const nlohmann::json here = by_key(cpu, key), there = by_key(gpu, key);
    if (2 * common(here, there).size() < here.size()) differs();
    // A cut between parts that are nearly equal keeps the one here and the other there.
    add_differences(common(here, there), common(there, here), 10.0 * tolerance, place, found);
  } else if (cpu.type() != gpu.type() || cpu.size() != gpu.size()) {
    differs();
  } else if (cpu.is_object()) {
    for (const auto& [name, value] : cpu.items()) {
      if (!is_compared(name)) continue;
      if (gpu.contains(name))
        add_differences(value, gpu[name], tolerance, place + "." + name, found);
      else
        found.push_back(place + "." + name + ": only on the CPU");
    }
  } else if (cpu.is_array()) {
    for (std::size_t i = 0; i < cpu.size(); ++i)
      add_differences(cpu[i], gpu[i], tolerance, place + "[" + std::to_string(i) + "]", found);
  } else if (cpu != gpu) {
    differs();
  }
}

std::vector<std::string> differences(const nlohmann::json& cpu, const nlohmann::json& gpu,
                                     double tolerance) {
  std::vector<std::string> found;
  add_differences(cpu, gpu, tolerance, "", found);
  return found;
}

void expect_the_same(const nlohmann::json& cpu, const nlohmann::json& gpu) {
  std::vector<std::string> found = differences(cpu, gpu, 2e-3);
  const std::size_t count = found.size();
  found.resize(std::min<std::size_t>(count, 20));
  EXPECT_EQ(count, 0u) << "such as\n" << fmt::format("{}", fmt::join(found, "\n"));
}

// Sums in another order end in other digits: where all agree, one device computed both.
void expect_other_digits(const nlohmann::json& cpu, const nlohmann::json& gpu) {
  EXPECT_FALSE(differences(cpu, gpu, 0.0).empty()) << "the GPU did not compute";
}

nlohmann::json result_of(Arguments arguments, const Arguments& placement) {
  arguments = arguments + placement + Arguments{"--json", "--quiet"};
  const ProgramRun run = run_program(arguments);
  // A dense model of 20 steps has not converged, which sparsify says with exit code 3.
  EXPECT_TRUE(run.code == 0 || (arguments[0] == "sparsify" && run.code == 3)) << run.err;
  return nlohmann::json::parse(run.out, nullptr, false);
}

const Arguments kCpu = {"--device", "cpu"}, kGpu = {"--device", "cuda"};

struct Command {
  const char* name;
  Arguments arguments;
  bool draws = false;      // leaves figures in a folder
  bool has_digits = true;  // prints numbers that were computed
};

void PrintTo(const Command& command, std::ostream* out) { *out << command.name; }

class CommandsOnBothDevices : public ::testing::TestWithParam<Command> {
 protected:
  void SetUp() override {
    if (!has_device(DeviceKind::kCuda)) GTEST_SKIP() << "this machine has no GPU";
    if (!study::find_named_model("dense-12x12") || !study::find_named_model("sparse-12x12"))
      GTEST_SKIP() << "there is no bundled model";
  }
};

TEST_P(CommandsOnBothDevices, SayTheSame) {
  const ScratchFolder scratch;
  const auto run = [&](const Arguments& placement) {
    Arguments arguments = GetParam().arguments;
    const std::filesystem::path out = scratch.path() / "out";
    std::filesystem::remove_all(out);
    if (GetParam().draws) arguments = arguments + Arguments{"--out", out, "--format", "svg"};
    return result_of(arguments, placement);
  };
  const nlohmann::json cpu = run(kCpu), gpu = run(kGpu);
  expect_the_same(cpu, gpu);
  if (GetParam().has_digits) expect_other_digits(cpu, gpu);
}

// The text that is measured and read; long enough that every head has something to attend to.
const char* const kProse =
    "The old captain looked at the sea, and the sea was calm. He had been there many years before, "
    "when the ship was new and the captain was young.";

INSTANTIATE_TEST_SUITE_P(
    All, CommandsOnBothDevices,
    ::testing::Values(
        Command{"Generate",
                {"generate", "sparse-12x12", "--prompt", kProse, "--temperature", "0",
                 "--max-tokens", "12"},
                false,
                false},
        Command{"Attention",
                {"attention", "dense-12x12", "sparse-12x12", "--prompt", kProse, "--show",
                 "roles,statistics,heads,pairs"}},
        Command{"TaskCheck", {"task", "check", "sparse-12x12", "ioi", "--prompts", "32"}},
        Command{"CircuitOfHeads",
                {"circuit", "dense-12x12", "sparse-12x12", "--task", "antonym", "--prompts", "16"}},
        Command{"CircuitOfEdges",
                {"circuit", "dense-12x12", "sparse-12x12", "--task", "antonym", "--prompts", "16",
                 "--parts", "edges"}},
        Command{"CircuitOfAttentionEdges",
                {"circuit", "dense-12x12", "sparse-12x12", "--task", "ioi", "--prompts", "16",
                 "--parts", "attention-edges", "--replacement", "zero"}},
        Command{"Patch",
                {"patch", "dense-12x12", "sparse-12x12", "--task", "antonym", "--prompts", "16",
                 "--site", "z,resid,mlp-out"}},
        Command{"LogitLens",
                {"lens", "dense-12x12", "sparse-12x12", "--prompt", kProse, "--show", "sublayers"}},
        Command{"LogitAttribution",
                {"lens", "dense-12x12", "sparse-12x12", "--task", "ioi", "--prompts", "16"}},
        Command{"Compare",
                {"compare", "dense-12x12", "sparse-12x12", "--prompt", kProse, "--task", "antonym",
                 "--prompts", "16"},
                true},
        Command{"Demo", {"demo", "--max-tokens", "1024", "--task", "antonym"}, true}),
    [](const auto& command) { return std::string(command.param.name); });

class TrainingOnBothDevices : public TrainingCommandTest {
 protected:
  void SetUp() override {
    if (!has_device(DeviceKind::kCuda)) GTEST_SKIP() << "this machine has no GPU";
    TrainingCommandTest::SetUp();
  }

  // The losses, gaps and edges that a run logged, step by step, and what it found in the end.
  nlohmann::json trained(Arguments arguments, const std::string& out, const Arguments& placement) {
    nlohmann::json steps = nlohmann::json::array();
    const nlohmann::json result = result_of(arguments, placement);
    std::istringstream log(contents_of(scratch_.path() / out / "log.jsonl"));
    for (std::string line; std::getline(log, line);) steps.push_back(nlohmann::json::parse(line));
    EXPECT_GT(steps.size(), 10u);
    std::filesystem::remove_all(path(out));
    return {{"steps", steps}, {"held_out", result["held_out"]}};
  }
};

TEST_F(TrainingOnBothDevices, PretrainSparsifyAndEvalSayTheSame) {
  for (const Arguments& command : {pretrain("again", "20"), sparsify("sparse", "20")}) {
    const std::string out = command[0] == "pretrain" ? "again" : "sparse";
    const nlohmann::json cpu = trained(command, out, kCpu), gpu = trained(command, out, kGpu);
    expect_the_same(cpu, gpu);
    expect_other_digits(cpu, gpu);
  }
  expect_trained(sparsify("sparse", "20"));
  const Arguments eval = {"eval",  path("dense"), path("sparse"), "--data",
                          shards_, "--show",      "layers"};
  const nlohmann::json cpu = result_of(eval, kCpu), gpu = result_of(eval, kGpu);
  expect_the_same(cpu, gpu);
  expect_other_digits(cpu, gpu);
}

TEST(BothDevices, Bf16LosesLittle) {
  if (!has_device(DeviceKind::kCuda)) GTEST_SKIP() << "this machine has no GPU";
  const auto dense = study::find_named_model("dense-12x12");
  if (!dense) GTEST_SKIP() << "there is no bundled model";
  const Arguments eval = {"eval", "dense-12x12", "sparse-12x12", "--text", *dense / "held-out.txt"};
  const auto full = result_of(eval, kCpu);
  const auto half = result_of(eval, kGpu + Arguments{"--precision", "bf16"});
  for (const std::size_t m : {0, 1}) {
    EXPECT_NEAR(half["models"][m]["loss"].get<double>(), full["models"][m]["loss"].get<double>(),
                0.01);
    EXPECT_NE(half["models"][m]["loss"], full["models"][m]["loss"]);  // it did compute in bf16
  }
}

TEST(BothDevices, TheGpuIsListedAndBenched) {
  if (!has_device(DeviceKind::kCuda)) GTEST_SKIP() << "this machine has no GPU";
  const auto devices = result_of({"info", "--show", "devices"}, {})["devices"];
  ASSERT_GE(devices.size(), 2u);
  EXPECT_EQ(devices[1]["device"], "cuda:0");
  const auto bench = result_of({"bench", "--cases", "attention-gated-b16-t1024"}, kGpu);
  EXPECT_EQ(bench["machine"]["gpu"], devices[1]["name"]);
  ASSERT_EQ(bench["cases"].size(), 1u);
  EXPECT_GT(bench["cases"][0]["seconds"].get<double>(), 0.0);
}

}  // namespace
}  // namespace filigree::cli
