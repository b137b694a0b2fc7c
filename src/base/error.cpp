#include "filigree/error.h"

namespace filigree {

void fail_with(fmt::string_view format, fmt::format_args args) {
  throw Error(fmt::vformat(format, args));
}

}  // namespace filigree
