#include "filigree/roles.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::int64_t kBatchTokens = 512;

}  // namespace

void HeadRoles::add(std::span<const HeadMap> heads,
                    const std::vector<std::vector<bool>>& delimiters) {
  parallel_for(static_cast<std::int64_t>(heads.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t h = begin; h < end; ++h) {
                   const HeadMap& head = heads[static_cast<std::size_t>(h)];
                   roles_.at(head.slot).add(
                       head.weights, head.length,
                       delimiters.empty() ? std::vector<bool>() : delimiters.at(head.prompt));
                 }
               });
}

void HeadRoles::add_repeated(const Model& model, const RepeatedText& text,
                             const std::vector<HeadId>& heads,
                             AppliedInterventions* interventions) {
  CaptureOptions options = CaptureOptions::of(heads, MapKind::kWeights);
  options.batch_tokens = kBatchTokens;
  options.interventions = interventions;
  capture_maps(model, text.prompts, options, [&](std::span<const HeadMap> maps) {
    for (const HeadMap& head : maps)
      roles_.at(head.slot).add_repeated(head.weights, head.length, text.start, text.period);
  });
}

void HeadRoles::add_names(const Model& model, const std::vector<NameProbe>& probes,
                          const std::vector<HeadId>& heads, AppliedInterventions* interventions) {
  std::vector<Prompt> prompts;
  for (const NameProbe& probe : probes) prompts.push_back(probe.prompt);
  CaptureOptions options = CaptureOptions::of(heads, MapKind::kWeights);
  options.batch_tokens = kBatchTokens;
  options.interventions = interventions;
  capture_maps(model, prompts, options, [&](std::span<const HeadMap> maps) {
    for (const HeadMap& head : maps) {
      const NameProbe& probe = probes[head.prompt];
      roles_.at(head.slot).add_names(head.weights, head.length, probe.receiver, probe.first,
                                     probe.second);
    }
  });
}

std::vector<RoleScores> HeadRoles::scores() const {
  std::vector<RoleScores> scores;
  for (const RoleAccumulator& role : roles_) scores.push_back(role.scores());
  return scores;
}

}  // namespace filigree
