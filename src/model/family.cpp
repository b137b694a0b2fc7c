#include "filigree/model/family.h"

#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/model/gpt2.h"

namespace filigree {

const Family& family_of(std::string_view model_type, const std::string& source) {
  static const Family* const kFamilies[] = {&kGpt2Family};
  std::string known;
  for (const Family* family : kFamilies) {
    if (family->model_type == model_type) return *family;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", family->model_type);
  }
  fail("{}: model_type '{}' is not one this program runs; it runs {}", source,
       printable(model_type), known);
}

}  // namespace filigree
