#include "filigree/error.h"
#include "filigree/train.h"

namespace filigree {

double metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics)
    if (key == name) return value;
  fail("metrics: there is no '{}'", name);
}

}  // namespace filigree
