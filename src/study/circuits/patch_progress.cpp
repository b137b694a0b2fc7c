#include "study/circuits/patch_progress.h"

#include <algorithm>
#include <memory>

namespace filigree::study {
namespace {

// One report after the other under one label.
struct Reports {
  std::unique_ptr<WorkReport> current;
  std::int64_t last = 0, most = 0;
};

}  // namespace

PatchOptions watched(PatchOptions options, const std::string& label, const Context& context) {
  options.ranks = &context.communicator();
  const auto reports = std::make_shared<Reports>();
  options.progress = [reports, label, &context](std::int64_t done, std::int64_t total) {
    context.throw_if_stopped();
    // The search for a curve's size is many sweeps of a few runs: a line each would be noise.
    reports->most = std::max(reports->most, total);
    if (total * 8 < reports->most) return;
    // The total is known only now; prompts of another length start over.
    if (!reports->current || done < reports->last)
      reports->current = context.begin({label, "runs", total});
    reports->last = done;
    reports->current->update(done);
    if (done == total) {
      reports->current->finish();
      reports->current.reset();
    }
  };
  return options;
}

}  // namespace filigree::study
