// The head that a prediction rests on most, and the prediction without it.
//
//   use_the_library [MODEL [PROMPT]]
//
// MODEL is a folder or the name of a bundled model. How much a head matters is taken from one run
// forwards and backwards: its output times the gradient of the predicted token's logit, which is the
// first-order effect of setting the output to zero. Then the output is set to zero.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/ops.h"
#include "filigree/study.h"

using namespace filigree;

int main(int argc, char** argv) try {
  const std::string name = argc > 1 ? argv[1] : "dense-12x12";
  const std::string prompt = argc > 2 ? argv[2] : "The day after Friday is";
  const study::LoadedModel loaded(name, name);
  const ModelConfig& config = loaded.config();
  const std::vector<TokenId> tokens = loaded.tokenizer().encode(prompt);
  const Tensor ids = Tensor::from_ids({1, static_cast<std::int64_t>(tokens.size())}, tokens);

  // What every head adds up from the values it looks at, hook_z [1, T, heads, head_width], and the
  // gradient there.
  Taps reading;
  reading.observe_gradient("blocks.*.attn.hook_z");
  Tape tape;
  const Variable logits =
      loaded.model().forward(ids, {.taps = &reading, .last_position_only = true});
  const TokenId answer = argmax(logits.value()).i32()[0];
  Tensor only_the_answer = Tensor::zeros(logits.shape());
  only_the_answer.mutable_f32()[answer] = 1.0f;
  tape.backward(logits, only_the_answer);

  std::int64_t layer = 0, head = 0;
  float strongest = 0.0f;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string tap = "blocks." + std::to_string(l) + ".attn.hook_z";
    const Variable product = mul(reading.value(tap), reading.gradient(tap));
    const Tensor effects = sum(sum(sum(product, 3), 1), 0).value();
    for (std::int64_t h = 0; h < config.heads; ++h) {
      if (std::abs(effects.f32()[h]) <= std::abs(strongest)) continue;
      strongest = effects.f32()[h];
      layer = l, head = h;
    }
  }

  Tensor all_but_one = Tensor::full({config.heads, 1}, 1.0f);
  all_but_one.mutable_f32()[head] = 0.0f;
  Taps ablation;
  ablation.intervene("blocks." + std::to_string(layer) + ".attn.hook_z",
                     [&](const Variable& z) { return mul(z, all_but_one); });
  const Tensor without =
      loaded.model().forward(ids, {.taps = &ablation, .last_position_only = true}).value();

  const double before = logits.value().f32()[answer], after = without.f32()[answer];
  std::printf("%s:%s\n", prompt.c_str(), loaded.tokenizer().token_text(answer).c_str());
  std::printf("strongest head L%dH%d, first-order effect %.3f\n", static_cast<int>(layer),
              static_cast<int>(head), static_cast<double>(strongest));
  std::printf("logit %.3f, without the head %.3f (%+.3f)\n", before, after, after - before);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "use_the_library: %s\n", error.what());
  return 1;
}
