#include "apps/cli/patch_progress.h"

#include <iostream>
#include <memory>

namespace filigree::cli {

PatchOptions with_bar(PatchOptions options, const std::string& label, const Session& session) {
  const auto bar = std::make_shared<std::unique_ptr<Progress>>();
  const auto last = std::make_shared<std::int64_t>(0);
  options.progress = [bar, last, label, &session](std::int64_t done, std::int64_t total) {
    throw_if_interrupted();
    // The total is known only now; prompts of another length, or the search for a curve's size,
    // start over.
    if (!*bar || done < *last)
      *bar = std::make_unique<Progress>(std::cerr, session.progress(label, "runs", total));
    *last = done;
    (*bar)->update(done);
    if (done == total) {
      (*bar)->finish();
      bar->reset();
    }
  };
  return options;
}

}  // namespace filigree::cli
