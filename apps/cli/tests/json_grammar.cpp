#include "apps/cli/tests/json_grammar.h"

#include <regex>
#include <set>

namespace filigree::cli {
namespace {

using Json = nlohmann::json;

// Their keys are names of things: special tokens, splits, tasks, files of a configuration.
const std::set<std::string> kKeyedByName = {"special", "splits", "gate"};

bool is_head(const std::string& text) {
  static const std::regex pattern("L[0-9]+H[0-9]+");
  return std::regex_match(text, pattern);
}

// What somebody might write for a head: "3.7", "L3.7", "l3h7", "3/7".
bool is_misspelled_head(const std::string& text) {
  static const std::regex pattern("(l[0-9]+h[0-9]+|L[0-9]+[./][0-9]+|layer [0-9]+.*head [0-9]+)");
  return std::regex_match(text, pattern);
}

bool is_snake_case(const std::string& text) {
  static const std::regex pattern("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  return std::regex_match(text, pattern);
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

class Walk {
 public:
  void see(const Json& value, const std::string& path, const std::string& key) {
    if (value.is_object()) {
      see_object(value, path, kKeyedByName.contains(key));
    } else if (value.is_array()) {
      see_array(value, path, key);
    } else if (value.is_string()) {
      see_text(value.get<std::string>(), path, key);
    } else if (value.is_number()) {
      see_number(value.get<double>(), path, key);
    }
  }

  std::vector<std::string> broken;

 private:
  void note(const std::string& path, const std::string& rule) {
    broken.push_back(path + ": " + rule);
  }

  void see_object(const Json& object, const std::string& path, bool keyed_by_name) {
    for (const auto& [key, value] : object.items()) {
      const std::string below = path.empty() ? key : path + "." + key;
      if (!keyed_by_name && !is_snake_case(key) && !is_head(key))
        note(below, "keys are small letters with underscores");
      if (key.find("heldout") != std::string::npos) note(below, "held_out");
      if (key.find("percent") != std::string::npos) note(below, "shares are from 0 to 1");
      see(value, below, key);
    }
    // A head is its name; numbers may stand beside it.
    if (!object.contains("layer") || !object.contains("head") || object["head"].is_null()) return;
    bool named = false;
    for (const auto& [key, value] : object.items())
      named = named || (value.is_string() && is_head(value.get<std::string>()));
    if (!named) note(path, "a head without its name, such as \"L3H7\"");
  }

  // Things of a list have the same keys; what one lacks is null.
  void see_array(const Json& array, const std::string& path, const std::string& key) {
    for (std::size_t i = 0; i < array.size(); ++i) {
      const std::string below = path + "[" + std::to_string(i) + "]";
      if (i > 0 && array[i].is_object() && array[0].is_object() &&
          keys_of(array[i]) != keys_of(array[0]))
        note(below, "other keys than the first of the list");
      see(array[i], below, key);
    }
  }

  void see_text(const std::string& text, const std::string& path, const std::string& key) {
    static const std::set<std::string> kFree = {"text", "prompt", "token", "script"};
    if (kFree.contains(key)) return;
    if (text.find("heldout") != std::string::npos) note(path, "held-out");
    if (is_misspelled_head(text)) note(path, "heads are written L3H7, not " + text);
  }

  void see_number(double value, const std::string& path, const std::string& key) {
    static const std::regex share("(.*_)?(share|fraction|level|accuracy)(_.*)?");
    if (std::regex_match(key, share) && (value < -1e-9 || value > 1 + 1e-9) &&
        key.find("ceiling") == std::string::npos)
      note(path, "a share is from 0 to 1, not " + std::to_string(value));
  }
};

}  // namespace

std::vector<std::string> broken_json_rules(const nlohmann::json& document) {
  Walk walk;
  walk.see(document, "", "");
  return walk.broken;
}

}  // namespace filigree::cli
