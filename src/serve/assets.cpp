#include "filigree/serve/assets.h"

#include <array>

namespace filigree {

std::string_view live_script();  // web/dist/live.js, by cmake/Embed.cmake

namespace serve {
namespace {

std::string_view page() {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>Filigree</title>\n"
         "<script src=\"/live.js\" defer></script>\n</head>\n"
         "<body><noscript>This page is drawn by a script.</noscript></body>\n</html>\n";
}

constexpr std::array kAssets = {
    Asset{"/", "text/html; charset=utf-8", page},
    Asset{"/live.js", "text/javascript; charset=utf-8", live_script},
};

}  // namespace

const Asset* find_asset(std::string_view path) {
  for (const Asset& asset : kAssets)
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace serve
}  // namespace filigree
