#include "figure/svg_cleanup.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <map>

namespace filigree::figure {

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

// How Cairo's numbered names start.
constexpr std::array<std::string_view, 5> kNumbered = {"image", "surface", "source-", "mask",
                                                       "clip"};

}  // namespace

std::string clean_svg(std::string_view svg, std::string_view title) {
  std::string out;
  out.reserve(svg.size() + 200);
  std::map<std::string, std::size_t> numbers;
  bool titled = false;
  std::size_t at = 0;
  while (at < svg.size()) {
    // Names stand after id=" or #; everything else, above all the pictures' data, is copied.
    const std::size_t next = svg.find_first_of("#\"", at);
    const std::size_t end = next == std::string_view::npos ? svg.size() : next + 1;
    out += svg.substr(at, end - at);
    at = end;
    // Browsers would smooth the cells otherwise; the older name is for older viewers.
    constexpr std::string_view kImage = "<image id=\"";
    if (out.ends_with(kImage))
      out.insert(out.size() - 4,
                 "style=\"image-rendering:optimizeSpeed;image-rendering:pixelated\" ");
    const bool is_name = out.ends_with("#") || out.ends_with(" id=\"");
    if (is_name) {
      for (const std::string_view prefix : kNumbered) {
        if (!svg.substr(at).starts_with(prefix)) continue;
        std::size_t digits = at + prefix.size();
        while (digits < svg.size() && std::isdigit(static_cast<unsigned char>(svg[digits])))
          ++digits;
        if (digits == at + prefix.size()) continue;
        const std::string name(svg.substr(at, digits - at));
        const std::size_t number = numbers.try_emplace(name, numbers.size()).first->second;
        out += fmt::format("{}{}", prefix, number);
        at = digits;
        break;
      }
    }
    if (!titled && !title.empty()) {  // right behind the opening tag of the document
      const std::size_t tag = out.rfind("<svg");
      if (tag != std::string::npos) {
        const std::size_t close = svg.find('>', at);
        if (close == std::string_view::npos) continue;
        out += svg.substr(at, close + 1 - at);
        out += fmt::format("\n<title>{}</title>", escaped(title));
        at = close + 1;
        titled = true;
      }
    }
  }
  return out;
}

}  // namespace filigree::figure
