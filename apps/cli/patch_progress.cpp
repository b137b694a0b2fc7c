#include "apps/cli/patch_progress.h"

#include <iostream>
#include <memory>

namespace filigree::cli {

PatchOptions with_bar(PatchOptions options, const std::string& label, const Session& session) {
  const auto bar = std::make_shared<std::unique_ptr<Progress>>();
  options.progress = [bar, label, &session](std::int64_t done, std::int64_t total) {
    throw_if_interrupted();
    // The total is known only now; prompts of another length start over.
    if (!*bar) *bar = std::make_unique<Progress>(std::cerr, session.progress(label, "runs", total));
    (*bar)->update(done);
    if (done == total) {
      (*bar)->finish();
      bar->reset();
    }
  };
  return options;
}

}  // namespace filigree::cli
