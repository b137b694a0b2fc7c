#include <memory>
#include <new>

#include "filigree/error.h"
#include "filigree/study.h"
#include "serve/changed_run.h"
#include "serve/generation.h"

namespace filigree::serve {
namespace {

// What a text is made of; it lives as long as its answer.
struct GrowingText {
  AppliedInterventions changes;
  study::TokenSteps steps;

  GrowingText(const study::LoadedModel& model, const ChangedRun& run,
              const study::StepOptions& options)
      : changes(model.model(), run.interventions),
        steps(model, run.prompt.ids, options, run.interventions.empty() ? nullptr : &changes) {}
};

std::string line_of(const Json& json) { return json_answer(json).body + "\n"; }

Json token_json(const study::LoadedModel& model, const study::GeneratedToken& token) {
  Json edges = Json::array();
  for (const study::OpenEdge& edge : token.edges)
    edges.push_back({head_name(edge.head), edge.key, edge.weight});
  return {{"token", study::shown_token(model.tokenizer(), token.id)},
          {"id", token.id},
          {"text", token.text},
          {"probability", token.probability},
          {"edges", edges}};
}

}  // namespace

Answer generation_answer(const study::LoadedModel& model, const GenerateQuery& query,
                         ModelQueue& turns, std::function<bool()> gone) {
  const ChangedRun run = run_of(model, query.run);
  std::shared_ptr<GrowingText> text;
  turns.run(gone, [&] { text = std::make_shared<GrowingText>(model, run, query.options); });
  Answer answer;
  answer.type = "application/x-ndjson";
  answer.stream = [&model, &turns, gone = std::move(gone), text](const WritePiece& write) {
    try {
      std::optional<study::GeneratedToken> token;
      do {
        turns.run(gone, [&] { token = text->steps.next(); });
      } while (token && write(line_of(token_json(model, *token))));
      if (!token) write(line_of({{"finish", name_of(text->steps.finish())}}));
    } catch (const study::Stopped&) {  // nobody reads
    } catch (const Refusal& refusal) {
      write(error_answer(refusal.status(), refusal.what(), refusal.remedy()).body + "\n");
    } catch (const Error& error) {
      write(error_answer(400, error.what(), "ask for less").body + "\n");
    } catch (const std::exception&) {
      write(error_answer(500, "the server failed to go on", "ask again").body + "\n");
    }
  };
  return answer;
}

}  // namespace filigree::serve
