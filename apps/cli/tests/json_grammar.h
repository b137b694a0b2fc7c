// The rules of the JSON that commands print: how keys, heads, names, shares and absent values are
// written.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace filigree::cli {

// The rules that a document breaks, each as "models[0].heads[3]: ...".
std::vector<std::string> broken_json_rules(const nlohmann::json& document);

}  // namespace filigree::cli
