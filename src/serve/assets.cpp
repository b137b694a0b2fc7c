#include "serve/assets.h"

#include <array>

namespace filigree {

std::string_view live_script();  // web/dist/live.js, by cmake/Embed.cmake
std::string_view live_style();   // web/dist/live.css

namespace serve {
namespace {

// What stands before the script has run is what it begins with (frame() of web/src/live/main.ts),
// so that it is seen at once and nothing moves.
std::string_view page() {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>Filigree</title>\n"
         "<link rel=\"stylesheet\" href=\"/live.css\">\n"
         "<script src=\"/live.js\" defer></script>\n</head>\n<body>\n"
         "<header class=\"top\"><h1>Filigree</h1></header>\n"
         "<main><div class=\"ask\"><textarea rows=\"2\" aria-label=\"prompt\"></textarea></div>"
         "<noscript>This page is drawn by a script.</noscript></main>\n</body>\n</html>\n";
}

constexpr std::array kAssets = {
    Asset{"/", "text/html; charset=utf-8", page},
    Asset{"/live.js", "text/javascript; charset=utf-8", live_script},
    Asset{"/live.css", "text/css; charset=utf-8", live_style},
};

}  // namespace

const Asset* find_asset(std::string_view path) {
  for (const Asset& asset : kAssets)
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace serve
}  // namespace filigree
