#include "serve/change_check.h"

#include <optional>

#include "filigree/error.h"
#include "filigree/study.h"

namespace filigree::serve {
namespace {

struct Misfit {
  std::string error = {};
  bool elsewhere = false;  // whether another prompt could have the change
};

std::optional<Misfit> misfit_of(const WrittenChange& change, const study::LoadedModel& model,
                                const std::vector<TokenId>& ids, const Limits& limits) {
  bool elsewhere = false;
  try {
    const Interventions one = interventions_of(std::span(&change, 1), limits);
    study::for_model(one, model);
    elsewhere = true;
    study::check_fits(study::for_text(one, model, ids), static_cast<std::int64_t>(ids.size()));
    return std::nullopt;
  } catch (const Error& error) {
    return Misfit{error.what(), elsewhere};
  } catch (const Refusal& refusal) {  // one text may be many changes
    return Misfit{refusal.what()};
  }
}

}  // namespace

Json changes_json(study::Models models, const ChangesQuery& query, const Limits& limits) {
  Json unfit = Json::array(), whole;
  std::vector<std::vector<TokenId>> ids;
  for (const std::size_t m : query.models)
    ids.push_back(study::prompt_tokens(models[m], query.prompt));
  try {
    interventions_of(query.changes, limits);
  } catch (const Refusal& refusal) {
    whole = {{"error", refusal.what()}, {"remedy", refusal.remedy()}};
  } catch (const Error&) {  // one of them cannot be read, and is found below
  }
  if (!whole.is_null()) return {{"unfit", unfit}, {"whole", whole}};
  for (const WrittenChange& change : query.changes)
    for (std::size_t n = 0; n < query.models.size(); ++n) {
      const std::optional<Misfit> misfit =
          misfit_of(change, models[query.models[n]], ids[n], limits);
      if (!misfit) continue;
      unfit.push_back({{"kind", name_of(change.kind)},
                       {"text", change.text},
                       {"error", misfit->error},
                       {"elsewhere", misfit->elsewhere}});
      break;
    }
  return {{"unfit", unfit}, {"whole", whole}};
}

}  // namespace filigree::serve
