// The large headers that most files include, parsed once (cmake/Modules.cmake). Nothing includes this
// file: sources name the headers they use, and builds with a compiler cache do without it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

// The literals "..."_json and "..."_json_pointer are plain inline functions that call the parser, so
// that every file that includes the header instantiates all of it: half a second each. Nothing here
// uses them; their bodies become those of templates that nobody instantiates.
#include <nlohmann/json_fwd.hpp>
#define _json(text, size) _json(text, size); template <int> nlohmann::json unused_json(text, size)
#define _json_pointer(text, size)   \
  _json_pointer(text, size);        \
  template <int>                    \
  nlohmann::json::json_pointer unused_json_pointer(text, size)
#include <nlohmann/json.hpp>
#undef _json
#undef _json_pointer
