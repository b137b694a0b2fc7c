// filigree run, and the interventions of the commands that take them, as a user writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "support/npz_reader.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

class RunCommandTest : public ::testing::Test {
 protected:
  nlohmann::json json_of(Arguments arguments) const {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }
  std::string error_of(const Arguments& arguments, int code = 1) const {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_EQ(run.out, "");
    return run.err;
  }

  const ModelFolder model_;
  const std::string name_ = model_.name();
  const ScratchFolder scratch_;
};

TEST_F(RunCommandTest, ShowsThePredictionBesideThePlainOne) {
  const ProgramRun run =
      run_program({"run", name_, "--prompt", "The cat sat on the", "--ablate", "L0H1,L1MLP",
                   "--scale", "L1H0=2", "--patch", "L1.resid@1=A dog", "--tap", "*hook_z",
                   "--gradient-of", " the", "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("1 ' cat'"),
                             HasSubstr("changed: L1.resid@1 from 'A dog', L1H0 x 2, L0H1 ablated, "
                                       "L1MLP ablated"),
                             HasSubstr("KL(plain || changed)"), HasSubstr("value x gradient"),
                             HasSubstr("blocks.1.attn.hook_z"), HasSubstr("where the prediction")));
  const ProgramRun plain = run_program({"run", name_, "--prompt", "The cat", "--quiet"});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, Not(HasSubstr("changed")));
}

TEST_F(RunCommandTest, WritesTapsAndAgreesWithTheLens) {
  const std::string file = (scratch_.path() / "taps.npz").string();
  const auto json =
      json_of({"run", name_, "--prompt", "The cat sat", "--tap", "blocks.1.hook_resid_*",
               "--ablate", "L1H2", "--token", " the", "--out", file});
  EXPECT_EQ(json["out"], file);
  EXPECT_EQ(json["taps"].size(), 3u);
  EXPECT_TRUE(read_zip(file).contains("changed.blocks.1.hook_resid_post.npy"));
  const auto lens =
      json_of({"lens", name_, "--prompt", "The cat sat", "--ablate", "L1H2", "--token", " the"});
  const double log_p = lens["models"][0]["points"].back()["positions"].back()["log_probability"];
  EXPECT_NEAR(std::exp(log_p), json["changed"]["next"][0]["probability"].get<double>(), 1e-5);
  const auto generated = json_of({"generate", name_, "--prompt", "The cat sat", "--ablate", "L1H2",
                                  "--temperature", "0", "--max-tokens", "1"});
  EXPECT_EQ(generated["continuations"][0]["ids"][0], json["changed"]["likeliest"].back()["id"]);
  const auto maps = json_of({"attention", name_, "--prompt", "The cat sat", "--show", "statistics",
                             "--ablate", "L1H2.pattern", "--heads", "L1H2"});
  EXPECT_EQ(maps["models"][0]["statistics"]["heads"][0]["peak"], 0.0);
  EXPECT_EQ(maps["interventions"][0]["place"], "L1H2.pattern");
}

TEST_F(RunCommandTest, NamesWhatIsWrong) {
  const Arguments start = {"run", name_, "--prompt", "The cat"};
  const auto error = [&](Arguments more, int code = 1) {
    more.insert(more.begin(), start.begin(), start.end());
    return error_of(more, code);
  };
  EXPECT_THAT(error({"--tap", "blocks.0.attn.hook_zz"}),
              AllOf(HasSubstr("no tap 'blocks.0.attn.hook_zz'"),
                    HasSubstr("nearest are blocks.0.attn.hook_z,")));
  EXPECT_THAT(error({"--ablate", "blocks.0.attn.hook_zz"}),
              AllOf(HasSubstr("no tap"), HasSubstr("nearest are blocks.0.attn.hook_z,")));
  EXPECT_THAT(error({"--ablate", "L7H0"}), HasSubstr("L7H0: there is no layer 7; there are 2"));
  EXPECT_THAT(error({"--ablate", "L1H0@9"}), HasSubstr("no position 9"));
  EXPECT_THAT(error({"--patch", "L1.resid=One two three four"}), HasSubstr("the run 2"));
  EXPECT_THAT(error({"--ablate", "nonsense"}, 2), HasSubstr("is no place in a model"));
  EXPECT_THAT(error({"--tap", "*", "--out", "x.txt"}, 2), HasSubstr("must end in .npz"));
  EXPECT_THAT(error({"--out", "x.npz"}, 2), HasSubstr("--tap GLOB"));
}

}  // namespace
}  // namespace filigree::cli
