#include <fmt/format.h>

#include "base/table.h"
#include "filigree/comparison_study.h"
#include "filigree/names.h"

namespace filigree::study {

std::string text_of(const ComparisonResult& result) {
  std::string tasks;
  for (const TaskCircuits& task : result.tasks) tasks += text_of(task) + "\n";
  return role_table(result.models) + "\n" +
         comparison_table(result.comparison, result.connections, result.models, false) + "\n" +
         tasks +
         fmt::format("{} files; the report is {}\n", result.files.size(), result.page().string());
}

}  // namespace filigree::study
