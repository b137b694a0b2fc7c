#include <algorithm>

#include "filigree/error.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

constexpr std::int64_t kCheckedAtOnce = 1024;

void put(std::vector<double>& all, const std::vector<std::size_t>& places,
         const std::vector<double>& values) {
  for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = values[i];
}

double mean_of(const std::vector<double>& values) { return estimate(values).mean; }

}  // namespace

Tensor prompt_ids(const PromptRefs& prompts, bool corrupt) {
  require(!prompts.empty(), "task: there is no prompt");
  const std::int64_t T = prompts[0]->length();
  std::vector<std::int32_t> ids;
  for (const TaskPrompt* prompt : prompts) {
    require(prompt->length() == T, "task: prompts of {} and {} tokens in one batch", T,
            prompt->length());
    const std::vector<TokenId>& tokens = corrupt ? prompt->corrupt : prompt->clean;
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  return Tensor::from_ids({static_cast<std::int64_t>(prompts.size()), T}, ids);
}

TaskScores score(const Model& model, const std::vector<TaskPrompt>& prompts, Metric metric,
                 const TaskProgress& progress) {
  TaskScores scores;
  for (auto* list :
       {&scores.clean, &scores.corrupt, &scores.clean_accuracy, &scores.corrupt_accuracy})
    list->resize(prompts.size());
  std::size_t done = 0;
  for (const std::vector<std::size_t>& batch : batches_of(prompts, kCheckedAtOnce)) {
    PromptRefs refs;
    for (const std::size_t i : batch) refs.push_back(&prompts[i]);
    const auto logits = [&](bool corrupt) {
      return model
          .forward(prompt_ids(refs, corrupt), {.last_position_only = true,
                                               .position = refs[0]->position,
                                               .logits_on_device = true,
                                               .precise_logits = true})
          .value();
    };
    const Tensor clean = logits(false), corrupt = logits(true);
    put(scores.clean, batch, measure(metric, clean, refs, clean));
    put(scores.corrupt, batch, measure(metric, corrupt, refs, clean));
    put(scores.clean_accuracy, batch, measure(Metric::kAccuracy, clean, refs));
    put(scores.corrupt_accuracy, batch, measure(Metric::kAccuracy, corrupt, refs));
    done += batch.size();
    if (progress) progress(done);
  }
  return scores;
}

double at_least(std::size_t count, const std::vector<double>& probabilities) {
  // happened[k]: probability of k events among those seen so far.
  std::vector<double> happened(probabilities.size() + 1, 0.0);
  happened[0] = 1;
  std::size_t seen = 0;
  for (const double p : probabilities) {
    ++seen;
    for (std::size_t k = seen; k > 0; --k)
      happened[k] = happened[k] * (1 - p) + happened[k - 1] * p;
    happened[0] *= 1 - p;
  }
  double sum = 0;
  for (std::size_t k = probabilities.size() + 1; k-- > count;) sum += happened[k];
  return std::min(sum, 1.0);
}

TaskCheck check_task(const TaskScores& scores, const std::vector<TaskPrompt>& prompts) {
  require(scores.clean.size() == prompts.size() && !prompts.empty(),
          "task: {} scores for {} prompts", scores.clean.size(), prompts.size());
  TaskCheck check;
  check.clean = estimate(scores.clean);
  check.corrupt = estimate(scores.corrupt);
  std::vector<double> differences, chances;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    differences.push_back(scores.clean[i] - scores.corrupt[i]);
    const auto right = static_cast<double>(prompts[i].answers.size());
    chances.push_back(right / (right + static_cast<double>(prompts[i].wrong.size())));
  }
  check.difference = estimate(differences);
  check.clean_accuracy = mean_of(scores.clean_accuracy);
  check.corrupt_accuracy = mean_of(scores.corrupt_accuracy);
  check.chance = mean_of(chances);
  const auto right = static_cast<std::size_t>(
      std::count(scores.clean_accuracy.begin(), scores.clean_accuracy.end(), 1.0));
  check.p_value = at_least(right, chances);
  check.least_p = at_least(prompts.size(), chances);
  check.better_than_chance = check.p_value < kChanceLevel;
  check.enough_prompts = check.least_p < kChanceLevel;
  check.corruption_matters =
      check.difference.mean > 0 && check.difference.mean > 2 * check.difference.error.value_or(0);
  return check;
}

}  // namespace filigree
