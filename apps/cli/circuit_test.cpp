// filigree circuit as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

#include "analyze/task/check.h"
#include "analyze/task/tasks.h"
#include "apps/cli/run_program.h"
#include "apps/cli/test_model.h"
#include "base/strings.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A random model can do one thing: what it does. Its likeliest next tokens after clean and corrupt
// prompts, where they differ, are the answers of a task at which it is always right.
void write_task_of(const ModelFolder& folder, const std::string& file, std::size_t count) {
  const std::unique_ptr<Model> model = load_model(folder.path());
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
  const TaskDefinition& task = task_definition("induction");
  TaskOptions options;
  options.prompts = 200;
  std::ofstream out(file);
  std::size_t written = 0;
  for (const TaskPrompt& prompt :
       make_task(task, corruption_of(task, "all-tokens"), tokenizer, options).prompts) {
    const auto likeliest = [&](bool corrupt) {
      const Tensor logits =
          model->forward(prompt_ids({&prompt}, corrupt), {.last_position_only = true}).value();
      return tokenizer.decode(std::vector<TokenId>{static_cast<TokenId>(
          std::max_element(logits.f32(), logits.f32() + logits.elements()) - logits.f32())});
    };
    const PromptText text = {
        prompt.text.clean, prompt.text.corrupt, {likeliest(false)}, {likeliest(true)}};
    if (!is_valid_utf8(text.answers[0]) || !is_valid_utf8(text.wrong[0]) ||
        !fit(text, tokenizer, {}).prompt)
      continue;
    out << nlohmann::json{{"clean", text.clean},
                          {"corrupt", text.corrupt},
                          {"answer", text.answers[0]},
                          {"wrong", text.wrong}}
        << "\n";
    if (++written == count) return;
  }
  FAIL() << "only " << written << " prompts on which the model tells clean from corrupt";
}

TEST(CircuitCommand, ClaimsNoCircuitOfWhatTheModelCannotDo) {
  const ModelFolder model;
  const ProgramRun run =
      run_program({"circuit", model.name(), "--task", "pronoun", "--prompts", "20", "--quiet"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("NOT better than chance"), HasSubstr("none claimed")));
}

TEST(CircuitCommand, FindsHeadsByEveryMethodAndComparesModels) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  write_task_of(model, file, 12);
  const ProgramRun run = run_program({"circuit", model.name(), "--task", file, "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("heads for 90 %"), HasSubstr("drop without it"),
                             HasSubstr("better than chance (accuracy 100.0 %")));
  for (const char* method : {"exact", "attribution", "ig"}) {
    SCOPED_TRACE(method);
    const ProgramRun json_run = run_program({"circuit", model.name(), model.name(), "--task", file,
                                             "--method", method, "--json", "--quiet"});
    ASSERT_EQ(json_run.code, 0) << json_run.err;
    const auto json = nlohmann::json::parse(json_run.out);
    ASSERT_EQ(json["models"].size(), 2u);
    const auto& found = json["models"][0];
    EXPECT_EQ(found, json["models"][1]);  // the same model twice
    EXPECT_EQ(found["heads"].size(), 8u);
    ASSERT_EQ(found["curve"].size(), 9u);
    EXPECT_NEAR(found["curve"][8]["effect"].get<double>(), 1.0, 1e-5);
    EXPECT_NEAR(found["curve"][0]["effect"].get<double>(), 0.0, 1e-3);
    EXPECT_GE(found["size"].get<int>(), 1);
  }
}

TEST(CircuitCommand, NamesWhatIsWrong) {
  const ModelFolder model;
  EXPECT_THAT(run_program({"circuit", model.name()}).err, HasSubstr("--task"));
  EXPECT_THAT(run_program({"circuit", model.name(), "--task", "ioi", "--method", "guess"}).err,
              HasSubstr("none of exact, attribution, ig"));
  EXPECT_THAT(run_program({"circuit", model.name(), "--task", "ioi", "--replacement", "x"}).err,
              HasSubstr("no replacement 'x'"));
}

}  // namespace
}  // namespace filigree::cli
