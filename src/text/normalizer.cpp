#include "text/normalizer.h"

#include <glib.h>

#include <algorithm>
#include <memory>

#include "filigree/error.h"

namespace filigree {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

constexpr std::size_t kMostGrowth = 16, kMostAdded = 1 << 17;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

struct Free {
  void operator()(gchar* text) const { g_free(text); }
};

// GLib ends at a zero byte, which composes with nothing: the parts between are composed.
std::string composed(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string_view part = text.substr(0, end);
    if (is_ascii(part)) {
      result += part;
    } else {
      const std::unique_ptr<gchar, Free> found(g_utf8_normalize(
          part.data(), static_cast<gssize>(part.size()), G_NORMALIZE_DEFAULT_COMPOSE));
      require(found != nullptr, "tokenizer: the text is not valid UTF-8");
      result += found.get();
    }
    if (end == text.size()) return result;
    result += '\0';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    result += text.substr(at, found - at);
    if (found == text.size()) break;
    result += to;
    at = found + from.size();
  }
  return result;
}

std::string normalize(const std::vector<NormalizerStep>& steps, std::string_view text) {
  std::string result(text);
  // Steps that feed each other could make any length of a short text.
  const std::size_t most = kMostGrowth * text.size() + kMostAdded;
  for (const NormalizerStep& step : steps) switch (step.kind) {
      case NormalizerStep::Kind::kNfc: result = composed(result); break;
      case NormalizerStep::Kind::kPrepend:
        if (!result.empty()) result.insert(0, step.to);
        break;
      case NormalizerStep::Kind::kReplace:
        require(count(result, step.from) <= (most - std::min(most, result.size())) /
                                                std::max<std::size_t>(step.to.size(), 1),
                "tokenizer: the normalizer makes {} bytes of text more than {} times as long",
                text.size(), kMostGrowth);
        result = replace_all(result, step.from, step.to);
        break;
    }
  return result;
}

}  // namespace filigree
