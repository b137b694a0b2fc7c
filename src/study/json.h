// Results as JSON: keys stay in the order in which they were written.
#pragma once

#include <nlohmann/json.hpp>

namespace filigree::study {

using Json = nlohmann::ordered_json;

// A value that may be absent: null then.
template <typename Optional>
Json json_or_null(const Optional& value) {
  return value ? Json(*value) : Json();
}

}  // namespace filigree::study
