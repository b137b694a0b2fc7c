// How many bytes of a text are done, in kB or MB as their number asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "filigree/study.h"

namespace filigree::study {

class ByteProgress {
 public:
  // `bytes` in all; 0: unknown.
  ByteProgress(const Context& context, std::string label, std::uint64_t bytes)
      : context_(context),
        unit_(bytes >= 10000000 ? 1000000 : 1000),
        report_(context.begin({std::move(label), unit_ == 1000000 ? "MB" : "kB",
                               static_cast<std::int64_t>(bytes / unit_)})) {}

  // Throws Stopped when the context asks for an end.
  void update(std::uint64_t bytes, std::string_view metric = {}) {
    context_.throw_if_stopped();
    report_->update(static_cast<std::int64_t>(bytes / unit_), metric);
  }

  void finish() { report_->finish(); }

 private:
  const Context& context_;
  std::uint64_t unit_;
  std::unique_ptr<WorkReport> report_;
};

}  // namespace filigree::study
