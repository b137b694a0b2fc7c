// The requests of the page and their answers, whatever carries them: server.h has HTTP.
//
//   GET    /                 the page, and the files it is made of (assets.h)
//   GET    /api/models       models, heads, tasks, colours, limits
//   GET    /api/roles        of all heads, found once
//   POST   /api/look         {"prompt", "models", "ablate", "scale", "patch", "heads", "kind",
//   "top"}:
//                            maps and predictions of one run (look.h)
//   POST   /api/head         ... {"head", "query"}: one head in numbers
//   POST   /api/importance   ... {"token"}: what each part does for a logit
//   POST   /api/lens         ... {"token", "top"}: predictions after every layer
//   POST   /api/attribution  ... {"at"} or {"answer", "wrong"}: what parts add to a logit
//   POST   /api/generate     ... {"tokens", "temperature", ...}: a text bit by bit (generation.h)
//   POST   /api/task         {"task", "prompts"}: prompts of a task
//   POST   /api/changes      {"prompt", "models", "ablate", "scale", "patch"}: which of the changes
//                            do not fit the prompt, and why (change_check.h)
//   POST   /api/export       ... {"view", "format", "theme"}: a file of what is on the screen
//   POST   /api/jobs         {"task", "models", "parts", "prompts", "level"}: starts a circuit
//                            study; with "trace", "sweep" or "train" other long work
//   GET    /api/jobs  /api/jobs/N  /api/jobs/N/events      DELETE /api/jobs/N
//   POST   /api/jobs/N/export  {"figure", "format", "theme"}: a file of its result
//
// Any number of threads may ask at once. Every failure is JSON {"error", "remedy"}.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "filigree/study.h"
#include "serve/answer.h"
#include "serve/model_queue.h"
#include "serve/request_limits.h"

namespace filigree::serve {

struct ApiRequest {
  std::string method = {}, path = {}, body = {};
  std::function<bool()> gone = {};  // whether nobody waits for the answer any more; may be empty
};

class Api {
 public:
  // Throws Error when the models have no tokenizer, or different ones. `context` has the seed of
  // studies; nobody watches them through it.
  Api(std::vector<study::LoadedModel> models, const study::Context& context,
      const Limits& limits = {});
  ~Api();

  // Throws nothing.
  Answer answer(const ApiRequest& request);

  const std::vector<study::LoadedModel>& models() const { return models_; }
  const Limits& limits() const { return limits_; }

 private:
  using AskModel = std::function<Json(const study::LoadedModel&, const study::Context&)>;

  Answer route(const ApiRequest& request);
  Answer post(const ApiRequest& request);
  // What each of the models says, in its turn: {"models": [...]}.
  Json ask(const std::vector<std::size_t>& models, const ApiRequest& request, const AskModel& one);
  study::Context quiet() const;  // nobody watches
  Answer view_prompt(const ApiRequest& request);
  Json roles(const ApiRequest& request);
  Answer export_view(const ApiRequest& request);
  Answer export_job(const std::string& number, const std::string& body);
  Json start_job(const std::string& body);
  Answer follow_job(const std::string& number, const std::function<bool()>& gone);

  std::vector<study::LoadedModel> models_;
  std::uint64_t seed_;
  Limits limits_;
  std::deque<ModelQueue> queue_;  // one a model
  std::mutex roles_mutex_;
  Json roles_;  // null: not found yet
  std::atomic<std::size_t> watchers_ = 0;
  // What is read and kept between requests; last, so that its jobs end first.
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace filigree::serve
