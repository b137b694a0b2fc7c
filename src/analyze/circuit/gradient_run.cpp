#include "analyze/circuit/gradient_run.h"

#include "analyze/circuit/replacements.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/tasks.h"

namespace filigree {

void check_attribution(const std::vector<TaskPrompt>& prompts, int steps,
                       const PatchOptions& options) {
  require(!prompts.empty(), "attribution: there is no prompt");
  require(steps >= 0 && steps <= 1000, "attribution: {} steps; 0 to 1000 make sense", steps);
  require(options.replacement == Replacement::kCorrupt || options.replacement == Replacement::kZero,
          "attribution: the replacement '{}' is not supported; 'corrupt' and 'zero' are",
          name_of(options.replacement));
  require(options.metric != Metric::kKl || steps > 0,
          "attribution: kl has no slope at the clean run, where it is best; take steps of "
          "integrated gradients");
}

void run_gradient(const Model& model, const PromptRefs& prompts, Taps& taps, Metric metric,
                  const Tensor& clean_logits, const Tensor& embedding) {
  if (embedding.defined())
    taps.intervene("hook_embed", [&](const Variable&) { return Variable(embedding); });
  if (model.config().gate.on())
    taps.intervene("blocks.*.attn.hook_gate",
                   [](const Variable& gate) { return Variable(gate.value()); });
  Tape tape;
  const Variable logits = model.forward(prompt_ids(prompts, false), analysed_run(taps, prompts));
  tape.backward(metric_sum(metric, logits, prompts, clean_logits));
}

Tensor between(const Tensor& a, const Tensor& b, double share) {
  return add(scale(a, static_cast<float>(1 - share)), scale(b, static_cast<float>(share))).value();
}

}  // namespace filigree
