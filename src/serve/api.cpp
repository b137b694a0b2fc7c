#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <thread>

#include "base/mapped_file.h"
#include "filigree/attention_study.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/roles.h"
#include "serve/answers.h"
#include "serve/assets.h"
#include "serve/change_check.h"
#include "serve/export.h"
#include "serve/features_work.h"
#include "serve/generation.h"
#include "serve/head_answer.h"
#include "serve/head_order.h"
#include "serve/jobs.h"
#include "serve/lens_answers.h"
#include "serve/long_work.h"
#include "serve/prompt_view.h"
#include "serve/requests.h"
#include "serve/typed_text.h"

namespace filigree::serve {
namespace {

constexpr std::string_view kJobs = "/api/jobs", kEvents = "/events", kExport = "/export";
constexpr std::chrono::milliseconds kLookAtJob{16};  // a frame of a screen
constexpr const char* kMendRequest = "change the request as the error says";

[[noreturn]] void refuse_path(const ApiRequest& request) {
  throw Refusal(404, fmt::format("there is no {} {}", request.method, printable(request.path)),
                "docs/viewer.md lists what there is");
}

// Mapped weights must be what they were. What has changed is a path of this machine.
void check_files() {
  try {
    require_unchanged_files();
  } catch (const Error&) {
    throw Refusal(500, "the files of a model have changed since it was loaded",
                  "start the server again");
  }
}

}  // namespace

struct Api::Session {
  Session(const std::vector<study::LoadedModel>& models, const Limits& limits)
      : reader(models, limits), trained(models.size()), jobs(limits) {}

  RequestReader reader;
  PlainRuns plain_runs;
  std::map<const study::LoadedModel*, TypedText> typed_texts;  // used in the model's turn
  TrainedFeatures trained;
  Jobs jobs;  // last, so that it ends first
};

Api::~Api() = default;

Api::Api(std::vector<study::LoadedModel> models, const study::Context& context,
         const Limits& limits)
    : models_(std::move(models)),
      seed_(context.seed),
      limits_(limits),
      session_(std::make_unique<Session>(models_, limits)) {
  require(!models_.empty(), "serve: there is no model to look at");
  const ModelConfig& first = models_[0].config();
  for (const study::LoadedModel& model : models_)
    require(model.config().layers == first.layers && model.config().heads == first.heads,
            "serve: '{}' has {} x {} heads and '{}' {} x {}; side by side they must be alike, "
            "otherwise start a server for each",
            printable(models_[0].name()), first.layers, first.heads, printable(model.name()),
            model.config().layers, model.config().heads);
  study::common_tokenizer(models_);  // and reads them, before threads share them
  for (const study::LoadedModel& model : models_) {
    queue_.emplace_back(limits.waiting);
    session_->typed_texts.try_emplace(&model, model, limits.typed_bytes);
  }
}

Answer Api::answer(const ApiRequest& request) {
  try {
    return route(request);
  } catch (const Refusal& refusal) {
    return error_answer(refusal.status(), refusal.what(), refusal.remedy());
  } catch (const study::Stopped&) {
    return error_answer(499, "whoever asked has gone", "ask again");
  } catch (const Error& error) {
    return error_answer(400, error.what(), kMendRequest);
  } catch (const std::bad_alloc&) {
    return error_answer(503, "there is not enough memory for this", "ask for a shorter prompt");
  } catch (const std::exception&) {
    return error_answer(500, "the server failed to answer", "ask for something else");
  }
}

Answer Api::route(const ApiRequest& request) {
  if (request.method == "POST") return post(request);
  const bool one_job =
      request.path.starts_with(kJobs) && request.path.substr(kJobs.size()).starts_with('/');
  const std::string number = one_job ? request.path.substr(kJobs.size() + 1) : "";
  if (request.method == "DELETE") {
    if (!one_job) refuse_path(request);
    return json_answer(session_->jobs.cancel(number));
  }
  if (number.ends_with(kEvents))
    return follow_job(number.substr(0, number.size() - kEvents.size()), request.gone);
  if (one_job) return json_answer(session_->jobs.describe(number));
  if (request.path == kJobs) return json_answer(session_->jobs.list());
  if (request.path == "/api/models") return json_answer(models_json(models_, limits_));
  if (request.path == "/api/roles") return json_answer(roles(request));
  if (const Asset* asset = find_asset(request.path))
    return {200, std::string(asset->type), std::string(asset->text())};
  refuse_path(request);
}

Answer Api::post(const ApiRequest& request) {
  const std::string &path = request.path, &body = request.body;
  const auto each = [&](const std::vector<std::size_t>& models, const AskModel& one) {
    return json_answer(ask(models, request, one));
  };
  using Model = study::LoadedModel;
  using Context = study::Context;
  if (path == "/api/look") return view_prompt(request);
  if (path == "/api/head") {
    const HeadQuery query = session_->reader.head(body);
    return each(query.run.models, [&](const Model& model, const Context& context) {
      return head_json(model, query, limits_, context);
    });
  }
  if (path == "/api/importance") {
    const ImportanceQuery query = session_->reader.importance(body);
    return each(query.run.models, [&](const Model& model, const Context& context) {
      return importance_json(model, query, context);
    });
  }
  if (path == "/api/lens") {
    const LensQuery query = session_->reader.lens(body);
    return each(query.run.models, [&](const Model& model, const Context& context) {
      return lens_json(model, query, limits_, context);
    });
  }
  if (path == "/api/attribution") {
    const AttributionQuery query = session_->reader.attribution(body);
    return each(query.run.models, [&](const Model& model, const Context& context) {
      return attribution_json(model, query, context);
    });
  }
  if (path == "/api/task")
    return json_answer(task_json(models_[0], session_->reader.task(body), quiet()));
  if (path == "/api/changes")
    return json_answer(changes_json(models_, session_->reader.changes(body), limits_));
  if (path == "/api/generate") {
    const GenerateQuery query = session_->reader.generate(body);
    const std::size_t m = query.run.models[0];
    return generation_answer(models_[m], query, queue_[m], request.gone);
  }
  if (path == "/api/export") return export_view(request);
  if (path == kJobs) return json_answer(start_job(body), 202);
  if (path.starts_with(kJobs) && path.ends_with(kExport)) {
    const std::size_t begin = kJobs.size() + 1, end = path.size() - kExport.size();
    if (end > begin) return export_job(path.substr(begin, end - begin), body);
  }
  refuse_path(request);
}

study::Context Api::quiet() const {
  study::Context context;
  context.seed = seed_;
  return context;
}

Json Api::ask(const std::vector<std::size_t>& models, const ApiRequest& request,
              const AskModel& one) {
  study::Context context = quiet();
  context.stop = request.gone;
  Json list = Json::array();
  for (const std::size_t m : models)
    queue_[m].run(request.gone, [&] { list.push_back(one(models_[m], context)); });
  check_files();
  return {{"models", list}};
}

Answer Api::view_prompt(const ApiRequest& request) {
  const PromptViewQuery query = session_->reader.view_prompt(request.body);
  std::vector<PromptView> looked;
  ask(query.run.models, request, [&](const auto& model, const auto& context) {
    TypedText& typed = session_->typed_texts.at(&model);
    looked.push_back(
        serve::view_prompt(model, query, session_->plain_runs, typed, limits_, context));
    return Json();
  });
  return prompt_views_answer(looked);
}

Json Api::roles(const ApiRequest& request) {
  {
    const std::lock_guard lock(roles_mutex_);
    if (!roles_.is_null()) return roles_;
  }
  std::vector<std::size_t> all(models_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  Json found = ask(all, request, [&](const auto& model, const auto& context) {
    return roles_json(model, context);
  });
  found["names"] = names_of<Pattern>();
  const std::lock_guard lock(roles_mutex_);
  return roles_ = std::move(found);
}

Answer Api::export_view(const ApiRequest& request) {
  const ExportQuery query = session_->reader.exported(request.body);
  study::Context context = quiet();
  context.stop = request.gone;
  std::vector<std::size_t> order = query.run.models;
  std::sort(order.begin(), order.end());  // everybody takes turns in this order
  Answer answer;
  std::function<void()> work = [&] {
    answer = export_answer(chosen_models(models_, order), query, limits_, context);
  };
  for (auto m = order.rbegin(); m != order.rend(); ++m)
    work = [&turns = queue_[*m], &request, inner = std::move(work)] {
      turns.run(request.gone, inner);
    };
  work();
  check_files();
  return answer;
}

Answer Api::export_job(const std::string& number, const std::string& body) {
  const JobExportQuery query = session_->reader.job_export(body);
  return job_export_answer(session_->jobs.result(number), query);
}

Answer Api::follow_job(const std::string& number, const std::function<bool()>& gone) {
  session_->jobs.describe(number);  // is there one?
  ++watchers_;
  const std::shared_ptr<void> place(nullptr, [this](void*) { --watchers_; });
  if (watchers_ > limits_.job_watchers)
    throw Refusal(503, fmt::format("{} answers follow jobs", limits_.job_watchers),
                  "GET /api/jobs/N says how far it is");
  Answer answer;
  answer.type = "application/x-ndjson";
  answer.stream = [this, number, gone, place](const WritePiece& write) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + limits_.watching;
    try {
      std::string last;
      while (true) {
        const Json job = session_->jobs.describe(number);
        const std::string line = json_answer(job).body + "\n";
        const bool left = (gone && gone()) || (line != last && !write(line));
        last = line;
        if (job.at("state") != name_of(JobState::kRunning)) break;
        if (left) session_->jobs.cancel(number);
        if (left || Clock::now() > until) break;
        std::this_thread::sleep_for(kLookAtJob);
      }
    } catch (const std::exception&) {  // forgotten meanwhile
    }
  };
  return answer;
}

Json Api::start_job(const std::string& body) {
  const auto labels = [&](const std::vector<std::size_t>& models) {
    Json list = Json::array();
    for (const std::size_t m : models) list.push_back(models_[m].label());
    return list;
  };
  const auto start = [&](const Json& about, const Jobs::Work& work) {
    return session_->jobs.start(about, quiet(), [work](const study::Context& watched) {
      JobResult result = work(watched);
      check_files();
      return result;
    });
  };
  const auto about_task = [&](const study::TaskSelection& task,
                              const std::vector<std::size_t>& models) {
    return Json{{"task", task.name}, {"models", labels(models)}, {"prompts", task.prompts}};
  };
  switch (session_->reader.job_kind(body)) {
    case JobKind::kTrace: {
      const TraceQuery query = session_->reader.trace(body);
      return start({{"trace", query.request.prompt}, {"models", labels(query.models)}},
                   [this, query](const study::Context& watched) {
                     return trace_work(models_, query, session_->trained, watched);
                   });
    }
    case JobKind::kSweep: {
      const SweepQuery query = session_->reader.sweep(body);
      Json about = about_task(query.request.task, query.models);
      about["sweep"] = name_of(query.request.sites[0]);
      return start(about, [this, query](const study::Context& watched) {
        return sweep_work(models_, query, watched);
      });
    }
    case JobKind::kTraining: {
      const TrainingQuery query = session_->reader.training(body);
      return start({{"train", models_[query.model].label()},
                    {"features", query.features},
                    {"tokens", query.tokens}},
                   [this, query](const study::Context& watched) {
                     return training_work(models_, query, session_->trained, watched);
                   });
    }
    case JobKind::kCircuit: break;
  }
  const CircuitQuery query = session_->reader.circuit(body);
  Json about = about_task(query.request.task, query.models);
  about["parts"] = name_of(query.request.search.parts);
  about["level"] = query.request.search.level;
  return start(about, [this, query](const study::Context& watched) {
    return circuit_work(models_, query, watched);
  });
}

}  // namespace filigree::serve
