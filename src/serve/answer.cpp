#include "serve/answer.h"

namespace filigree::serve {

Answer json_answer(const Json& json, int status) {
  return {status, "application/json", json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

Answer error_answer(int status, const std::string& error, const std::string& remedy) {
  return json_answer({{"error", error}, {"remedy", remedy}}, status);
}

}  // namespace filigree::serve
