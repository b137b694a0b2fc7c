// The colours of pages, of both themes, as their scripts read them (web/src/data.ts).
#pragma once

#include <nlohmann/json.hpp>

namespace filigree {

// {"light": {...}, "dark": {...}}
nlohmann::json page_colors();

}  // namespace filigree
