// Files and names that mean harm, as a user meets them: through the program, with its messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <new>

#include "apps/cli/program/exit_handlers.h"
#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "apps/cli/training/training_test_support.h"
#include "base/mapped_file.h"
#include "support/files.h"
#include "support/random_transcoder.h"
#include "support/temporary_folder.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

TEST(HostileInput, AMappedFileThatIsCutShortEndsTheProgramWithItsName) {
  const TemporaryFolder folder;
  const fs::path path = write_file(folder / "we\x1bights", std::string(100'000, 'x'));
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    catch_shrinking_files();
    const auto file = MappedFile::open(path);
    if (::truncate(path.c_str(), 0) != 0) ::_exit(3);
    unsigned sum = 0;
    for (const std::byte byte : file->bytes()) sum += std::to_integer<unsigned>(byte);
    ::_exit(sum == 0 ? 4 : 5);  // a wrong number
  }
  ::close(pipe[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  std::string said(400, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(pipe[0], said.data(), 400))));
  ::close(pipe[0]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_THAT(said, AllOf(HasSubstr("we?ights' became shorter while it was read"),
                          HasSubstr("run the command again")));
}

TEST(HostileInput, MemoryThatIsMissingWhereNothingMayBeThrownIsAnErrorToo) {
  EXPECT_EXIT(
      {
        catch_missing_memory();
        const auto run_dry = [] { throw std::bad_alloc(); };
        [&]() noexcept { run_dry(); }();
      },
      ::testing::ExitedWithCode(1), "filigree: not enough memory");
}

TEST(HostileInput, CurvesOfDeepJsonAreRefusedInWords) {
  const TemporaryFolder folder;
  const std::string log = (folder / "log.jsonl").string();
  write_file(log, std::string(60'000, '[') + std::string(60'000, ']') + "\n");
  const ProgramRun run = run_program({"info", log, "--out", (folder / "x.svg").string()});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("nested"));
}

TEST(HostileInput, PipesAndDevicesAreRefusedAndNeverWaitedFor) {
  const ModelFolder model;
  const TemporaryFolder folder;
  const fs::path config = model.path() / "config.json";
  fs::remove(model.path() / "checksums.json");
  fs::remove(config);
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  const ProgramRun pipe = run_program({"info", model.name()});
  EXPECT_EQ(pipe.code, 1);
  EXPECT_THAT(pipe.err, HasSubstr("not a regular file"));
  const ProgramRun endless =
      run_program({"prepare", "/dev/zero", "--out", (folder / "shards").string(), "--tokenizer",
                   (golden_folder() / "bpe-8k").string()});
  EXPECT_EQ(endless.code, 1);
  EXPECT_THAT(endless.err, HasSubstr("it is a device; give text files"));
  // Nor is anything written into a pipe that nobody reads.
  const fs::path out = folder / "pipe.csv";
  ASSERT_EQ(::mkfifo(out.c_str(), 0600), 0);
  const ProgramRun written =
      run_program({"task", "corpus", "--size", "1kB", "--out", out.string()});
  EXPECT_EQ(written.code, 1) << written.out;
}

TEST(HostileInput, ValuesThatAreNotFiniteAreNamedWhereTheyComeFrom) {
  const ModelFolder model;
  const auto loaded = load_model(model.path());
  std::string tensor;
  for (const NamedParameter& parameter : loaded->parameters())
    if (parameter.name.find("h.0.mlp.c_proj.weight") != std::string::npos) {
      parameter.variable.mutable_value() = parameter.variable.value().clone();
      parameter.variable.mutable_value().mutable_f32()[3] = NAN;
      tensor = parameter.name;
    }
  ASSERT_FALSE(tensor.empty());
  save_model(*loaded, model.path());
  const ModelFolder whole;
  const TemporaryFolder folder;
  const std::string features = (folder / "features").string();
  write_transcoder(features, random_transcoder(loaded->config(), TranscoderKind::kPerLayer, 8), {});
  const std::string text = write_file(folder / "text", "It was a dark night; it rained.").string();
  const std::string table = (folder / "table.csv").string();
  const std::string prompt = "It was a dark night";
  const std::vector<Arguments> commands = {
      {"eval", model.name(), "--text", text},
      {"attention", model.name(), "--prompt", prompt, "--show", "statistics", "--out", table},
      {"attention", model.name(), "--prompt", prompt, "--show", "roles"},
      {"attention", model.name(), "--prompt", prompt, "--show", "pairs"},
      {"attention", model.name(), "--prompt", prompt, "--out", (folder / "maps.npz").string()},
      {"lens", model.name(), "--prompt", "It was"},
      {"lens", model.name(), "--prompt", "It was", "--target", "a"},
      {"run", model.name(), "--prompt", prompt},
      {"task", "check", model.name(), "induction", "--prompts", "4"},
      {"circuit", model.name(), "--task", "induction", "--prompts", "4"},
      {"patch", model.name(), "--task", "induction", "--prompts", "4"},
      {"head", model.name(), "L1H0", "--task", "induction"},
      {"eval", model.name(), "--features", features, "--text", text},
      {"features", "index", model.name(), features, "--text", text, "--out",
       (folder / "index").string()},
      {"trace", model.name(), "--features", features, "--prompt", prompt},
      {"compare", whole.name(), model.name(), "--prompt", prompt, "--out",
       (folder / "page").string()}};
  for (Arguments command : commands) {
    for (const bool json : {false, true}) {
      if (json) command.emplace_back("--json");
      const ProgramRun run = run_program(command);
      EXPECT_EQ(run.code, 1) << command[0] << run.out << run.err;
      EXPECT_EQ(run.out, "") << command[0];
      EXPECT_THAT(run.err, AllOf(HasSubstr("is not finite"), HasSubstr(tensor))) << command[0];
    }
  }
  EXPECT_FALSE(fs::exists(table));
}

TEST(HostileInput, ATranscoderThatIsNotFiniteIsNamed) {
  const ModelFolder model;
  const TemporaryFolder folder;
  Transcoder transcoder =
      random_transcoder(load_model(model.path())->config(), TranscoderKind::kPerLayer, 8);
  transcoder.feature_parameters()[0].variable.mutable_value().mutable_f32()[3] = INFINITY;
  const std::string features = (folder / "features").string();
  write_transcoder(features, transcoder, {});
  const std::string text = write_file(folder / "text", "It was a dark night; it rained.").string();
  for (const Arguments& command :
       {Arguments{"eval", model.name(), "--features", features, "--text", text},
        Arguments{"features", "index", model.name(), features, "--text", text, "--out",
                  (folder / "index").string()},
        Arguments{"trace", model.name(), "--features", features, "--prompt", "It was"}}) {
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.code, 1) << command[0] << run.out;
    EXPECT_THAT(run.err, AllOf(HasSubstr("is not finite"), HasSubstr("the transcoder '")))
        << command[0];
  }
  EXPECT_FALSE(fs::exists(folder / "index"));
}

TEST(HostileInput, ControlCharactersReachNoTerminal) {
  const ModelFolder model;
  const TemporaryFolder folder;
  const fs::path evil = folder / "m\x1b]0;owned\x07\xc2\x9b";
  fs::copy(model.path(), evil, fs::copy_options::recursive);
  const auto expect_clean = [](const std::string& text) {
    EXPECT_THAT(text,
                AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), Not(HasSubstr("\xc2\x9b"))));
  };
  for (const Arguments& command :
       {Arguments{"info", evil.string()}, Arguments{"info", evil.string(), "--json"},
        Arguments{"info", (evil / "missing").string()},
        Arguments{"info", evil.string(), "--checksums", "check"},
        Arguments{"attention", evil.string(), "--prompt", "a \x1b[31mred", "--show", "roles"},
        Arguments{"convert", evil.string(), "--out", evil.string()}}) {
    const ProgramRun run = run_program(command);
    expect_clean(run.out);
    expect_clean(run.err);
  }
  // What a configuration says of itself.
  fs::remove(evil / "checksums.json");
  std::string config = read_file(evil / "config.json");
  config.replace(config.find("\"gpt2\""), 6, "\"g\\u001b[2Jx\\u009b\"");
  write_file(evil / "config.json", config);
  const ProgramRun run = run_program({"info", evil.string()});
  EXPECT_EQ(run.code, 1);
  expect_clean(run.err);
}

TEST(HostileInput, VerifyFindsWhatIsDamagedAndSaysWhatItCannotCheck) {
  const ModelFolder model;
  EXPECT_THAT(run_program({"info", model.name(), "--checksums", "check"}).out,
              HasSubstr(": whole, "));
  std::string bytes = read_file(model.path() / "model.safetensors");
  bytes[bytes.size() / 2] ^= 4;
  write_file(model.path() / "model.safetensors", bytes);
  const ProgramRun damaged = run_program({"info", model.name(), "--checksums", "check"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr(": damaged\n  model.safetensors has the checksum ")));
  const ProgramRun loaded = run_program({"generate", model.name(), "--prompt", "It"});
  EXPECT_EQ(loaded.code, 1);
  EXPECT_THAT(loaded.err, HasSubstr("it is damaged, or was changed after it was written"));
  // Changed on purpose.
  EXPECT_EQ(run_program({"info", model.name(), "--checksums", "write"}).code, 0);
  fs::remove(model.path() / "checksums.json");
  const ProgramRun none = run_program({"info", model.name(), "--checksums", "check"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.out, HasSubstr("there are no checksums here"));
}

class HostileRunTest : public TrainingCommandTest {};

TEST_F(HostileRunTest, TwoRunsDoNotShareAFolder) {
  // The first is still at it when the second comes.
  std::string message;
  int code = 0;
  const ProgramRun first = run_and_signal(pretrain("run", "4000"), SIGINT, [&] {
    if (log_lines("run") < 3) return false;
    const ProgramRun second = run_program(pretrain("run", "4000") + Arguments{"--seed", "1"});
    message = second.err, code = second.code;
    return true;
  });
  EXPECT_EQ(first.code, 130) << first.err;
  EXPECT_EQ(code, 1);
  EXPECT_THAT(message, HasSubstr("is in use by process "));
}

TEST_F(HostileRunTest, HeldOutShardsOfALargerVocabularyAreRefusedBeforeTraining) {
  fs::copy(shards_, path("other"), fs::copy_options::recursive);
  std::string index = read_file(path("other/index.json"));
  const std::size_t at = index.find("\"vocabulary\": ");
  ASSERT_NE(at, std::string::npos);
  index.insert(at + 14, "1");
  write_file(path("other/index.json"), index);
  const ProgramRun run = run_program(pretrain("run", "4") + Arguments{"--held-out", path("other")});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("have a vocabulary of "));
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(HostileRunTest, PrepareDoesNotReplaceAModelsTokenizer) {
  const std::string before = read_file(path("dense/tokenizer.json"));
  write_file(path("words.txt"), "some words of text");
  const ProgramRun run = run_program(
      {"prepare", path("words.txt"), "--out", path("dense"), "--vocab", "300", "--force"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("holds a model, whose tokenizer would be replaced"));
  EXPECT_EQ(read_file(path("dense/tokenizer.json")), before);
}

}  // namespace
}  // namespace filigree::cli
