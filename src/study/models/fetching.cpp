#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "base/table.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "hub/cache.h"
#include "hub/download/fetch.h"

namespace filigree::study {
namespace {

std::string text_of_variable(const char* variable, std::string fallback) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? std::move(fallback) : std::string(value);
}

bool is_offline() {
  std::string value = text_of_variable("HF_HUB_OFFLINE", "");
  for (char& c : value)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return value == "1" || value == "TRUE" || value == "YES" || value == "ON";
}

hub::HubSettings hub_settings(const FetchRequest& request) {
  hub::HubSettings settings;
  settings.endpoint = request.endpoint.empty() ? text_of_variable("HF_ENDPOINT", settings.endpoint)
                                               : request.endpoint;
  settings.token = request.token.empty() ? text_of_variable("HF_TOKEN", "") : request.token;
  return settings;
}

// How much of the files is there, in kB or MB.
class FetchReport {
 public:
  explicit FetchReport(const Context& context) : context_(context) {}

  void begin(std::uint64_t bytes, std::uint64_t there) {
    constexpr std::uint64_t kShownInMegabytes = 10000000;
    unit_ = bytes >= kShownInMegabytes ? 1000000 : 1000;
    report_ = context_.begin({"fetch", unit_ == 1000 ? "kB" : "MB",
                              static_cast<std::int64_t>(bytes / unit_),
                              static_cast<std::int64_t>(there / unit_)});
  }
  void at(std::uint64_t bytes, const std::string& file) {
    if (report_) report_->update(static_cast<std::int64_t>(bytes / unit_), file);
  }
  void finish() {
    if (report_) report_->finish();
  }

 private:
  const Context& context_;
  std::uint64_t unit_ = 1;
  std::unique_ptr<WorkReport> report_;
};

std::string what_happened(const FetchedModelFile& file) {
  if (!file.downloaded) return "was there";
  if (file.checksum.empty()) return "downloaded; the hub gives no checksum";
  return file.checksum == "git" ? "downloaded, git checksum right" : "downloaded, SHA-256 right";
}

}  // namespace

FetchedModel run(const FetchRequest& request, Models, const Context& context) {
  const hub::HubName name = hub::parse_hub_name(request.model);
  require(!is_offline(), "'{}' is not fetched: HF_HUB_OFFLINE is set", name.text());
  FetchReport report(context);
  const hub::FetchWatcher watcher = {
      .begin = [&](std::uint64_t bytes, std::uint64_t there) { report.begin(bytes, there); },
      .at = [&](std::uint64_t bytes, const std::string& file) { report.at(bytes, file); },
      .note = [&](const std::string& sentence) { context.say(sentence); },
      .look_up = [&] { context.throw_if_stopped(); }};
  const hub::Fetched fetched =
      hub::fetch(name, request.cache.empty() ? hub::cache_folder() : request.cache,
                 hub_settings(request), watcher);
  report.finish();
  FetchedModel result = {.model = name.text(),
                         .repository = name.repository,
                         .revision = name.revision,
                         .commit = fetched.commit,
                         .folder = fetched.folder,
                         .files = {},
                         .bytes = 0,
                         .downloaded_bytes = fetched.received};
  for (const hub::FetchedFile& file : fetched.files) {
    result.bytes += file.bytes;
    result.files.push_back({file.name, file.bytes, file.downloaded, file.checksum});
  }
  return result;
}

Json to_json(const FetchedModel& fetched) {
  Json files = Json::array();
  for (const FetchedModelFile& file : fetched.files)
    files.push_back({{"file", file.file},
                     {"bytes", file.bytes},
                     {"downloaded", file.downloaded},
                     {"checksum", file.checksum.empty() ? Json() : Json(file.checksum)}});
  return {{"model", fetched.model},
          {"repository", fetched.repository},
          {"revision", fetched.revision},
          {"commit", fetched.commit},
          {"folder", fetched.folder.string()},
          {"bytes", fetched.bytes},
          {"downloaded_bytes", fetched.downloaded_bytes},
          {"files", files}};
}

std::string text_of(const FetchedModel& fetched) {
  Table table({{"file"}, {"size", Align::kRight}, {""}});
  for (const FetchedModelFile& file : fetched.files)
    table.add({printable(file.file, 200), human_bytes(file.bytes), what_happened(file)});
  return table.text() + fmt::format("\n{}: {}, {} of it downloaded now\n{}\n", fetched.model,
                                    human_bytes(fetched.bytes),
                                    human_bytes(fetched.downloaded_bytes),
                                    printable(fetched.folder.string(), 400));
}

}  // namespace filigree::study
