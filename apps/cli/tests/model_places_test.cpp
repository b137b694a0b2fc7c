// Models by name: where they are looked for, that every command takes them, and what is said when
// there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "support/random_transcoder.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

// A place with the model "named", known through FILIGREE_MODELS.
class ModelPlaces : public ::testing::Test {
 protected:
  ModelPlaces() {
    fs::create_directory(place());
    fs::create_directory_symlink(model_.path(), place() / "named");
    set_places(place().string());
  }
  ~ModelPlaces() override { ::unsetenv("FILIGREE_MODELS"); }

  static void set_places(const std::string& list) { ::setenv("FILIGREE_MODELS", list.c_str(), 1); }
  fs::path place() const { return scratch_.path() / "place"; }
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  static void expect_success(const Arguments& arguments, int code = 0) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << arguments[0] << ": " << run.err;
  }

  const ModelFolder model_;
  const ScratchFolder scratch_;
};

TEST_F(ModelPlaces, EveryCommandTakesAName) {
  std::ofstream(path("text.txt")) << "The cat sat on the mat. The dog sat on the cat.\n";
  expect_success({"info", "named"});
  expect_success({"info", "named", "--show", "taps"});
  expect_success({"info", "named", "--prompt", "a cat"});
  expect_success({"generate", "named", "--prompt", "a cat", "--max-tokens", "2"});
  expect_success({"convert", "named", "--out", path("copy")});
  expect_success({"prepare", path("text.txt"), "--tokenizer", "named", "--set", "held-out-share=0",
                  "--out", path("shards")});
  expect_success({"sparsify", "named", path("shards"), "--out", path("run"), "--steps", "1",
                  "--context", "4", "--dry-run"});
  expect_success({"eval", "named", "--text", path("text.txt")});
  expect_success({"eval", "named", "--data", path("shards"), "--split", "train"});
  expect_success({"attention", "named", "named", "--prompt", "a cat", "--show", "roles"});
  expect_success({"attention", "named", "--data", path("shards"), "--split", "train", "--context",
                  "4", "--samples", "1", "--show", "statistics"});
  expect_success({"task", "show", "named", "pronoun", "--prompts", "2"});
  expect_success({"head", "named"});
  // A random model cannot do it, which is exit code 3.
  expect_success({"task", "check", "named", "pronoun", "--prompts", "4"}, 3);
  expect_success({"circuit", "named", "--task", "pronoun", "--prompts", "4"}, 3);
  expect_success({"patch", "named", "--task", "pronoun", "--prompts", "4"}, 3);
  expect_success({"lens", "named", "--prompt", "a cat"});
  expect_success({"lens", "named", "--task", "pronoun", "--prompts", "4"}, 3);
  expect_success(
      {"compare", "named", "named", "--out", path("out"), "--prompt", "a cat", "--format", "svg"});
}

TEST_F(ModelPlaces, AreSearchedInOrderAndNamesAreNoPaths) {
  const ModelFolder other(2);
  fs::create_directory(path("second"));
  fs::create_directory_symlink(other.path(), path("second/named"));
  fs::create_directory_symlink(other.path(), path("second/only-here"));
  fs::create_directory(path("second/no-model"));
  set_places(":" + place().string() + "::" + path("second"));
  EXPECT_EQ(study::find_named_model("named"), place() / "named");
  EXPECT_EQ(study::find_named_model("only-here"), path("second/only-here"));
  set_places(path("second") + ":" + place().string());
  EXPECT_EQ(study::find_named_model("named"), path("second/named"));
  for (const char* name : {"no-model", "absent", "", ".", "..", "../place/named", "/", "named/"})
    EXPECT_FALSE(study::find_named_model(name)) << name;
}

TEST_F(ModelPlaces, HaveTranscodersThatGoWithTheirModels) {
  const auto config = load_model(model_.path())->config();
  const Transcoder transcoder = random_transcoder(config, TranscoderKind::kCrossLayer, 12);
  const Arguments steered = {"run", "named", "--prompt", "a cat", "--steer", "L0F3=2"};
  const ProgramRun without = run_program(steered);
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("say which transcoder: --features DIR"));
  write_transcoder(place() / "named-features", transcoder, {});
  std::ofstream(path("text.txt")) << "The cat sat on the mat. The dog sat on the cat.\n";
  expect_success(steered);
  expect_success({"trace", "named", "--prompt", "a cat sat"});
  expect_success({"trace", "named", "--prompt", "a cat sat", "--twin", "named"});
  expect_success({"eval", "named", "--features", "beside", "--text", path("text.txt")});
  expect_success({"eval", (place() / "named").string() + "/", "--features", "beside", "--text",
                  path("text.txt")});
  expect_success({"features", "show", "named", "named-features", "L0F3"});
  expect_success({"convert", "named-features", "--out", path("wide")});
  expect_success({"info", "named-features", "--checksums", "check"});
  const ProgramRun twice = run_program({"convert", "named-features", "--out", path("wide")});
  EXPECT_THAT(twice.err, HasSubstr("holds a transcoder already"));
  const ProgramRun absent = run_program({"trace", "named", "--features", "nemad", "--prompt", "a"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, AllOf(HasSubstr("transcoder 'nemad': there is no such folder"),
                                HasSubstr("'" + place().string() + "' (named-features)")));
}

TEST_F(ModelPlaces, AFolderOfTheNameComesFirst) {
  const ProgramRun run =
      run_shell("cd '" + scratch_.path().string() + "' && mkdir named && \"$FILIGREE\" info named");
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("named/config.json"));
}

TEST_F(ModelPlaces, AreListedWithTheirModelsWhenANameIsNowhere) {
  set_places(place().string() + ":" + path("missing"));
  for (const Arguments& arguments :
       {Arguments{"info", "nemad"}, Arguments{"info", "nemad", "--prompt", "a"}}) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(StartsWith("filigree"), HasSubstr("'nemad': no such folder"),
                               HasSubstr("'" + place().string() + "' (named)"),
                               HasSubstr("'" + path("missing") + "' (no such folder)"),
                               HasSubstr("/share/filigree/models'"),
                               HasSubstr("'" FILIGREE_SOURCE_DIR "/models'")));
  }
  EXPECT_THAT(run_program({"info", "nemad"}).err, HasSubstr("FILIGREE_MODELS"));
}

TEST_F(ModelPlaces, AnInstalledProgramFindsItsOwn) {
  ::unsetenv("FILIGREE_MODELS");
  fs::create_directories(path("prefix/bin"));
  fs::create_directories(path("prefix/share/filigree/models"));
  fs::copy_file(FILIGREE_PROGRAM, path("prefix/bin/filigree"));
  fs::create_directory_symlink(model_.path(), path("prefix/share/filigree/models/installed"));
  // By a link from elsewhere too.
  fs::create_symlink(path("prefix/bin/filigree"), path("link"));
  for (const char* program : {"prefix/bin/filigree", "link"}) {
    const ProgramRun run = run_shell("'" + path(program) + "' info installed");
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("2 layers, 4 heads"));
  }
}

}  // namespace
}  // namespace filigree::cli
