#include "filigree/study.h"

namespace filigree::study {
namespace {

class Unwatched final : public WorkReport {
 public:
  void update(std::int64_t, std::string_view) override {}
  void finish() override {}
};

}  // namespace

std::unique_ptr<WorkReport> Context::begin(const Work& work) const {
  std::unique_ptr<WorkReport> report = watch ? watch(work) : nullptr;
  if (!report) report = std::make_unique<Unwatched>();
  return report;
}

void Context::say(const std::string& sentence) const {
  if (note) note(sentence);
}

void Context::throw_if_stopped() const {
  if (stopping()) throw Stopped();
}

Communicator& Context::communicator() const {
  // Holds nothing, so that all who work alone may share it.
  static const std::unique_ptr<Communicator> alone = make_single_process();
  return ranks != nullptr ? *ranks : *alone;
}

}  // namespace filigree::study
