#include "filigree/text/json_document.h"

#include <string>
#include <utility>
#include <vector>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace {

using nlohmann::json;

class DocumentBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit DocumentBuilder(std::string_view name) : name_(name) {}

  json take() { return std::move(root_); }

  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(number_integer_t value) override { return place(value); }
  bool number_unsigned(number_unsigned_t value) override { return place(value); }
  bool number_float(number_float_t value, const string_t&) override { return place(value); }
  bool string(string_t& value) override { return place(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON text

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    const auto [entry, added] = open_.back()->emplace(value, nullptr);
    if (!added) fail("{}: the key '{}' occurs twice in one object", name_, printable(value));
    slot_ = &*entry;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    std::string_view message = error.what();
    // The library's own numbering of errors says nothing to a user.
    if (const auto bracket = message.find("] "); bracket != std::string_view::npos)
      message.remove_prefix(bracket + 2);
    fail("{}: {}", name_, printable(message, 300));
  }

 private:
  // Puts a value where the next one belongs: at the root, behind the last key, or at an array's
  // end.
  json* put(json value) {
    if (++values_ > kMaxJsonValues) fail("{}: more than {} JSON values", name_, kMaxJsonValues);
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool place(json value) {
    put(std::move(value));
    return true;
  }

  bool open(json value) {
    if (open_.size() >= kMaxJsonDepth)
      fail("{}: JSON nested deeper than {} levels", name_, kMaxJsonDepth);
    open_.push_back(put(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view name_;
  json root_;
  // Only the innermost open container grows, so the pointers to its parents stay valid.
  std::vector<json*> open_;
  json* slot_ = nullptr;
  std::size_t values_ = 0;
};

}  // namespace

json parse_json_document(std::string_view text, std::string_view name) {
  if (text.size() > kMaxJsonBytes)
    fail("{}: {} bytes of JSON; at most {} are accepted", name, text.size(), kMaxJsonBytes);
  DocumentBuilder builder(name);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace filigree
