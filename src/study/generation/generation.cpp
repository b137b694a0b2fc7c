#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/stopwatch.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/generation_study.h"
#include "filigree/study.h"

namespace filigree::study {

std::string StopWatcher::push(std::string_view text) {
  held_ += text;
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    found_ = true;
    return std::exchange(held_, "").substr(0, first);
  }
  // The longest end of the text that is the beginning of a stop text.
  std::size_t kept = 0;
  for (const std::string& stop : stops_)
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > kept; --length)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length)))
        kept = length;
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopWatcher::finish() { return std::exchange(held_, ""); }

Generator::Generator(const Model& model, Tokenizer tokenizer, std::vector<TokenId> prompt,
                     GenerationOptions options, AppliedInterventions* interventions,
                     SteeredFeatures* steering)
    : model_(model),
      tokenizer_(std::move(tokenizer)),
      prompt_(std::move(prompt)),
      options_(std::move(options)),
      interventions_(interventions),
      steering_(steering) {
  const std::int64_t context = model.config().context;
  const auto length = static_cast<std::int64_t>(prompt_.size());
  require(length > 0, "the prompt is empty, and the tokenizer has no token that begins a text");
  require(length <= context,
          "the prompt is {} tokens long, but the model's context is {}; shorten it by {}", length,
          context, length - context);
  for (const std::string& stop : options_.stops)
    require(!stop.empty(), "a stop text is empty; it would end every continuation at once");
  for (TokenId id = 0; id < model.config().vocabulary; ++id)
    if (!tokenizer_.has_token(id)) unknown_to_tokenizer_.push_back(id);

  if (interventions_ != nullptr) interventions_->put_on(taps_);
  if (steering_ != nullptr) steering_->put_on(taps_);
  if (options_.use_cache)
    cache_ = model.make_cache(1, std::min(context, length + options_.max_tokens));
  prompt_logits_ = logits_after(prompt_);
}

// The logits for the token after `ids`, of which the cache may already hold a beginning.
std::vector<float> Generator::logits_after(const std::vector<TokenId>& ids) {
  if (cache_ &&
      !model_.config().same_angles(cache_->longest_run(), static_cast<std::int64_t>(ids.size())))
    cache_->clear();
  const std::size_t known = cache_ ? static_cast<std::size_t>(cache_->length()) : 0;
  const std::span<const TokenId> fresh = std::span(ids).subspan(known);
  const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(fresh.size())}, fresh);
  const auto first = static_cast<std::int64_t>(known),
             length = static_cast<std::int64_t>(prompt_.size());
  if (interventions_ != nullptr) interventions_->set_pass(first, length);
  if (steering_ != nullptr) steering_->set_pass(first, length);
  const bool changed = interventions_ != nullptr || steering_ != nullptr;
  const Variable logits = model_.forward(input, {.taps = changed ? &taps_ : nullptr,
                                                 .cache = cache_.get(),
                                                 .last_position_only = true});  // [1, 1, V]
  const std::span<const float> values = logits.value().values();
  std::vector<float> result(values.begin(), values.end());
  for (const TokenId id : unknown_to_tokenizer_)
    result[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
  return result;
}

Continuation Generator::run(std::uint64_t seed, std::uint64_t stream,
                            const std::function<void(std::string_view)>& on_text,
                            const std::function<bool()>& stop) {
  const Stopwatch watch;
  const auto prompt_length = static_cast<std::int64_t>(prompt_.size());
  if (cache_) cache_->truncate(prompt_length);
  Sampler sampler(options_.sampling, seed, stream);
  StreamingDecoder decoder(tokenizer_);
  StopWatcher stops(options_.stops);
  Continuation result;
  const auto give_out = [&](const std::string& text) {
    if (text.empty()) return;
    result.text += text;
    on_text(text);
  };

  std::vector<TokenId> ids = prompt_;
  std::vector<float> logits = prompt_logits_;
  while (true) {
    const TokenId id = sampler.choose(logits);
    if (id == tokenizer_.eos_id()) {
      result.finish = Finish::kEndOfText;
      break;
    }
    ids.push_back(id);
    result.ids.push_back(id);
    give_out(stops.push(decoder.push(id)));
    if (stops.found()) {
      result.finish = Finish::kStopText;
    } else if (static_cast<std::int64_t>(result.ids.size()) >= options_.max_tokens) {
      result.finish = Finish::kMaxTokens;
    } else if (static_cast<std::int64_t>(ids.size()) > model_.config().context) {
      result.finish = Finish::kContext;
    } else if (stop && stop()) {
      result.finish = Finish::kInterrupted;
    } else {
      logits = logits_after(ids);
      continue;
    }
    break;
  }
  if (!stops.found()) {
    give_out(stops.push(decoder.finish()));
    if (!stops.found()) give_out(stops.finish());
  }
  result.seconds = watch.seconds();
  return result;
}

std::size_t Generation::tokens() const {
  std::size_t count = 0;
  for (const Continuation& one : continuations) count += one.ids.size();
  return count;
}

double Generation::seconds() const {
  double sum = 0.0;
  for (const Continuation& one : continuations) sum += one.seconds;
  return sum;
}

bool Generation::reached_context() const {
  return std::any_of(continuations.begin(), continuations.end(),
                     [](const Continuation& one) { return one.finish == Finish::kContext; });
}

Generation run(const GenerationRequest& request, Models models, const Context& context,
               const GenerationReader& reader) {
  const LoadedModel& model = models.only();
  const ModelConfig& config = model.config();
  std::vector<TokenId> ids = request.chat
                                 ? encode_chat(model.tokenizer(), request.prompt, "the prompt")
                                 : encode_prompt(model.tokenizer(), request.prompt, "the prompt");
  if (ids.empty()) ids = model.tokenizer().begin_ids();
  check_ids(ids, config.vocabulary, model.name());
  std::optional<AppliedInterventions> changes;
  if (!request.interventions.empty())
    changes.emplace(model.model(), for_text(request.interventions, model, ids));
  std::optional<Steering> steering;
  if (!request.steering.empty()) steering.emplace(request.features, request.steering, model);
  Generator generator(model.model(), model.tokenizer(), ids, request.options,
                      changes ? &*changes : nullptr, steering ? &steering->features() : nullptr);
  Generation result{model.name(), request, ids.size(), config.context, {}};
  for (std::int64_t i = 0; i < request.count; ++i) {
    if (reader.begin) reader.begin(i);
    result.continuations.push_back(generator.run(
        context.seed, static_cast<std::uint64_t>(i),
        [&](std::string_view text) {
          if (reader.text) reader.text(text);
        },
        context.stop));
    if (reader.end) reader.end();
    context.throw_if_stopped();
  }
  return result;
}

Json to_json(const Generation& generation) {
  const GenerationOptions& options = generation.request.options;
  Json list = Json::array();
  for (const Continuation& one : generation.continuations)
    list.push_back({{"text", one.text},
                    {"ids", one.ids},
                    {"finish", name_of(one.finish)},
                    {"seconds", one.seconds}});
  return {{"model", generation.model},
          {"prompt", shown_prompt(generation.request.prompt)},
          {"prompt_tokens", generation.prompt_tokens},
          {"interventions", to_json(generation.request.interventions)},
          {"features",
           generation.request.features.empty() ? Json() : Json(generation.request.features)},
          {"steering", to_json(generation.request.steering)},
          {"temperature", options.sampling.temperature},
          {"top_k", options.sampling.top_k},
          {"top_p", options.sampling.top_p},
          {"max_tokens", options.max_tokens},
          {"continuations", list}};
}

Knobs knobs_of(GenerationOptions& options) {
  Knobs knobs;
  knobs.section("Sampling");
  knobs.flag({.name = "cache",
              .what = "keep keys and values instead of computing every position "
                      "again for every token"},
             options.use_cache);
  return knobs;
}

}  // namespace filigree::study
