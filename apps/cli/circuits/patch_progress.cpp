#include "apps/cli/circuits/patch_progress.h"

#include <algorithm>
#include <iostream>
#include <memory>

namespace filigree::cli {

PatchOptions with_bar(PatchOptions options, const std::string& label, const Session& session) {
  options.ranks = &session.ranks();
  const auto bar = std::make_shared<std::unique_ptr<Progress>>();
  const auto last = std::make_shared<std::int64_t>(0);
  const auto most = std::make_shared<std::int64_t>(0);
  options.progress = [bar, last, most, label, &session](std::int64_t done, std::int64_t total) {
    throw_if_interrupted();
    // The search for a curve's size is many sweeps of a few runs: a line each would be noise.
    *most = std::max(*most, total);
    if (total * 8 < *most) return;
    // The total is known only now; prompts of another length start over.
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
