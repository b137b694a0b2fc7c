// The program as a whole: help, usage errors, exit codes, streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <sstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/device.h"
#include "filigree/version.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::string> kCommands = {
    "info",     "fetch", "generate", "eval",  "prepare", "pretrain", "convert",
    "sparsify", "bench", "demo",     "gates", "compare", "task",     "circuit",
    "patch",    "lens",  "head",     "trace", "run",     "attention"};

// One line on stderr, nothing on stdout.
void expect_failure(const ProgramRun& run, int code, const std::string& part) {
  EXPECT_EQ(run.code, code);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, AllOf(StartsWith("filigree"), HasSubstr(part), EndsWith("\n")));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

TEST(Program, VersionSaysWhatTheBuildIs) {
  const ProgramRun run = run_program({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, build_description() + "\n");
  EXPECT_EQ(run.err, "");
}

TEST(Program, HelpListsEveryCommand) {
  const ProgramRun run = run_program({"--help"});
  EXPECT_EQ(run.code, 0);
  for (const std::string& command : kCommands) EXPECT_THAT(run.out, HasSubstr("\n  " + command));
  EXPECT_EQ(run_program({"help"}).out, run.out);
}

TEST(Program, EveryCommandHasTheCommonOptionsAndExamples) {
  for (const std::string& command : kCommands) {
    SCOPED_TRACE(command);
    const ProgramRun run = run_program({command, "--help"});
    EXPECT_EQ(run.code, 0);
    for (const char* option : {"--json", "--quiet", "--threads", "--seed"})
      EXPECT_THAT(run.out, HasSubstr(std::string("\n  ") + option));
    EXPECT_THAT(run.out, HasSubstr("Examples\n  "));
    EXPECT_EQ(run_program({"help", command}).out, run.out);
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Program, WithoutACommandItShowsItsHelpAsAMistake) {
  const ProgramRun run = run_program({});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("Usage: filigree COMMAND"));
}

TEST(Program, UnknownCommandsAndOptionsSuggestTheNearest) {
  expect_failure(run_program({"ifno"}), 2, "unknown command 'ifno'; did you mean 'info'?");
  expect_failure(run_program({"frobnicate"}), 2, "unknown command 'frobnicate' (see");
  expect_failure(run_program({"info", "--treads", "2"}), 2,
                 "unknown option '--treads'; did you mean '--threads'?");
  expect_failure(run_program({"eval", "--contxt=3"}), 2, "did you mean '--context'?");
  expect_failure(run_program({"--jsno"}), 2, "unknown option '--jsno'");
  expect_failure(run_program({"generate", "a", "b"}), 2, "unexpected argument 'b'");
  expect_failure(run_program({"eval", "m", "--stride", "8"}), 2,
                 "'--stride' is a setting: write --set stride=VALUE");
  expect_failure(run_program({"generate", "m", "-dashes first"}), 2, "write --prompt=TEXT");
}

TEST(Program, MissingAndWrongValuesAreNamed) {
  expect_failure(run_program({"info"}), 2, "FOLDER is required");
  expect_failure(run_program({"generate", "m"}), 2, "give either --prompt TEXT or --text FILE");
  expect_failure(run_program({"eval", "m"}), 2, "give either --text FILE or --data SHARDS");
  expect_failure(run_program({"pretrain", "s"}), 2, "--out is required");
  expect_failure(run_program({"attention"}), 2, "MODEL is required");
  expect_failure(run_program({"compare"}), 2, "DENSE is required");
  expect_failure(run_program({"info", "m", "--threads"}), 2, "--threads needs a value");
  for (const std::string& command : kCommands)
    expect_failure(run_program({command, "--threads", "0"}), 2,
                   "--threads: '0' is not a whole number from 1 to 1024");
  expect_failure(run_program({"info", "m", "--threads", "1025"}), 2, "'1025'");
  expect_failure(run_program({"info", "m", "--threads", "2x"}), 2, "'2x'");
  expect_failure(run_program({"info", "m", "--seed", "-1"}), 2, "'-1'");
  expect_failure(run_program({"eval", "m", "--device", "gpu"}), 2, "'gpu' is neither cpu nor cuda");
  expect_failure(run_program({"generate", "m", "--prompt", "p", "--temperature", "nan"}), 2,
                 "'nan'");
  expect_failure(run_program({"generate", "m", "--prompt", "p", "--top-p", "1.5"}), 2, "'1.5'");
  expect_failure(
      run_program({"generate", "m", "--prompt", "p", "--max-tokens", "99999999999999999999"}), 2,
      "'99999999999999999999'");
  expect_failure(run_program({"bench", "--cases", "nothing"}), 2,
                 "'nothing' is none of forward-maps");
  expect_failure(run_program({"--completion", "fish"}), 2, "'fish' is neither bash nor zsh");
}

TEST(Program, AMissingGpuIsAnErrorThatSaysWhy) {
  const ProgramRun run = run_program({"task", "list", "--device", "cuda"});
  if (has_device(DeviceKind::kCuda))
    EXPECT_EQ(run.code, 0) << run.err;
  else
    expect_failure(run, 1, kHasCuda ? "there is no NVIDIA GPU" : "this build has no CUDA side");
}

TEST(Program, Bf16NeedsAGpu) {
  expect_failure(run_program({"eval", "m", "--precision", "f16"}), 2,
                 "'f16' is neither f32 nor bf16");
  expect_failure(run_program({"eval", "m", "--precision", "bf16"}), 2,
                 "--precision bf16 goes with --device cuda");
}

TEST(Program, OfAnOptionGivenTwiceTheLastCounts) {
  const auto json = nlohmann::json::parse(
      run_program({"info", "--show", "devices", "--json", "--seed", "1", "--seed", "7"}).out);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["command"], "info");
  EXPECT_EQ(json["filigree"], version_string());
}

TEST(Program, ThreadsAreTaken) {
  for (const char* threads : {"1", "3"})
    EXPECT_EQ(nlohmann::json::parse(
                  run_program({"info", "--show", "devices", "--json", "--threads", threads})
                      .out)["threads"],
              std::stoi(threads));
}

TEST(Program, OutputThatNobodyReadsIsAFailure) {
  const ModelFolder model;
  // Far more output than a pipe holds.
  const std::string text = FILIGREE_SOURCE_DIR "/LICENSE";
  const ProgramRun run = run_shell("{ \"$FILIGREE\" info " + model.name() + " --text " + text +
                                   "; echo $? >&2; } | head -n 1");
  EXPECT_EQ(run.out, "  id        bytes  token\n");
  EXPECT_EQ(run.err, "filigree: cannot write to standard output: Broken pipe\n1\n");
}

TEST(Program, AFullDiskIsAFailure) {
  const ProgramRun run = run_shell("\"$FILIGREE\" --version > /dev/full");
  expect_failure(run, 1, "cannot write to standard output: No space left on device");
}

TEST(Program, ALimitOnTheSizeOfFilesIsAFailure) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "text").string();
  const ProgramRun run = run_shell(
      "ulimit -f 100; \"$FILIGREE\" task corpus --quiet --size 10MB --out '" + file + "'");
  expect_failure(run, 1, "cannot write '" + file + "': File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Program, SignalsThatEndItLeaveNothingHalfWritten) {
  for (const int signal : {SIGTERM, SIGHUP, SIGXCPU, SIGUSR1}) {
    const ScratchFolder folder;
    const ProgramRun run =
        run_and_signal({"task", "corpus", "--quiet", "--size", "100GB", "--out",
                        (folder.path() / "text").string()},
                       signal, [&] { return !std::filesystem::is_empty(folder.path()); });
    EXPECT_EQ(run.code, 128 + signal) << run.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(Program, ClosedStandardStreamsDoNoHarm) {
  EXPECT_EQ(run_shell("\"$FILIGREE\" --version 2>&- <&-").code, 0);
  EXPECT_EQ(run_shell("\"$FILIGREE\" info missing >&- 2>&- <&-").code, 1);
  // What was asked for went nowhere.
  EXPECT_EQ(run_shell("\"$FILIGREE\" --version >&- 2>&- <&-").code, 1);
  expect_failure(run_shell("\"$FILIGREE\" --version >&-"), 1,
                 "cannot write to standard output: Bad file descriptor");
}

TEST(Program, WarningsGoToStderrUnlessQuiet) {
  const ModelFolder folder;
  const auto model = load_model(folder.path());
  Tensor broken = model->parameters()[0].variable.value().clone();
  broken.mutable_f32()[5] = std::numeric_limits<float>::quiet_NaN();
  model->parameters()[0].variable.mutable_value() = broken;
  const ScratchFolder damaged;
  save_model(*model, damaged.path());
  std::filesystem::copy_file(folder.path() / "tokenizer.json", damaged.path() / "tokenizer.json");
  const std::vector<std::string> command = {"generate", damaged.path().string(), "--prompt",
                                            "Hello", "--json"};
  const ProgramRun loud = run_program(command);
  EXPECT_EQ(loud.code, 1);
  EXPECT_EQ(loud.out, "");
  EXPECT_THAT(loud.err, HasSubstr("filigree: warning: "));
  EXPECT_THAT(loud.err, HasSubstr("is nan; the model's weights are damaged"));
  std::vector<std::string> quiet = command;
  quiet.emplace_back("--quiet");
  EXPECT_THAT(run_program(quiet).err, ::testing::Not(HasSubstr("warning")));
}

TEST(Program, CompletionScriptsKnowCommandsAndOptions) {
  const ProgramRun bash = run_shell(
      "command -v bash >/dev/null || exit 77; "
      "bash -c 'eval \"$(\"$FILIGREE\" --completion bash)\"; "
      "COMP_WORDS=(filigree ge); COMP_CWORD=1; _filigree; echo \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(filigree eval --cont); COMP_CWORD=2; _filigree; echo \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(filigree eval --device c); COMP_CWORD=3; _filigree; echo \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(filigree circuit --format svg,p); COMP_CWORD=3; _filigree; "
      "echo \"${COMPREPLY[@]}\"; "
      "COMP_WORDS=(filigree task \"\"); COMP_CWORD=2; _filigree; echo \"${COMPREPLY[@]}\"'");
  if (bash.code == 77) GTEST_SKIP() << "bash is not installed";
  EXPECT_EQ(bash.code, 0) << bash.err;
  EXPECT_EQ(bash.out, "generate\n--context\ncpu cuda\nsvg,pdf svg,png\nlist show check corpus\n");
  const ProgramRun zsh = run_program({"--completion", "zsh"});
  EXPECT_EQ(zsh.code, 0);
  EXPECT_THAT(zsh.out, StartsWith("#compdef filigree\n"));
  for (const std::string& command : kCommands)
    EXPECT_THAT(zsh.out, HasSubstr("    " + command + ")\n"));
  EXPECT_THAT(zsh.out, HasSubstr("'--text:UTF-8 text file"));
  EXPECT_THAT(zsh.out, HasSubstr("    'eval --device') choices=(cpu cuda) ;;\n"));
}

}  // namespace
}  // namespace filigree::cli
