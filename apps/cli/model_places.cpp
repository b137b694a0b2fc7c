#include "apps/cli/model_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

// A name, not a way to a folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

bool is_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

std::vector<std::string> models_in(const fs::path& place) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(place, ignored))
    if (is_model(item.path())) names.push_back(printable(item.path().filename().string()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<fs::path> model_places() {
  std::vector<fs::path> places;
  if (const char* folders = std::getenv("FILIGREE_MODELS")) {
    const std::string list = folders;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      if (end > begin) places.emplace_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    places.push_back(program.parent_path().parent_path() / "share" / "filigree" / "models");
  places.emplace_back(FILIGREE_SOURCE_MODELS);
  return places;
}

std::optional<fs::path> find_named_model(const std::string& name) {
  if (!is_plain_name(name)) return std::nullopt;
  for (const fs::path& place : model_places())
    if (is_model(place / name)) return place / name;
  return std::nullopt;
}

std::string model_places_text() {
  std::vector<std::string> texts;
  for (const fs::path& place : model_places()) {
    const std::vector<std::string> names = models_in(place);
    std::error_code ignored;
    const std::string found = !names.empty() ? fmt::format("{}", fmt::join(names, ", "))
                              : fs::is_directory(place, ignored) ? "no models"
                                                                 : "no such folder";
    texts.push_back(fmt::format("'{}' ({})", printable(place.string()), found));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace filigree::cli
