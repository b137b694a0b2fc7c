// Writes every figure over made-up data, in every theme and format: what one looks at after a
// change to src/figure. See docs/figures.md.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "filigree/error.h"
#include "filigree/figures.h"
#include "support/figure_samples.h"

namespace {

namespace fs = std::filesystem;
using namespace filigree;

int run(const fs::path& folder, const std::vector<std::string>& themes,
        const std::vector<std::string>& formats, const std::string& only, bool stored,
        const figure::SaveOptions& options) {
  fs::create_directories(folder);
  int written = 0;
  for (const figure::samples::Sample& sample : figure::samples::all()) {
    if (!only.empty() && sample.name != only) continue;
    if (stored && !sample.stored) continue;
    for (const std::string& theme : themes) {
      const figure::Figure made = sample.make(figure::theme_named(theme));
      for (const std::string& format : formats) {
        const fs::path path = folder / fmt::format("{}-{}.{}", sample.name, theme, format);
        const auto start = std::chrono::steady_clock::now();
        figure::save(made, path, options);
        const std::chrono::duration<double, std::milli> time =
            std::chrono::steady_clock::now() - start;
        fmt::print("{:<40} {:>9} bytes {:>7.0f} ms\n", path.filename().string(),
                   fs::file_size(path), time.count());
        ++written;
      }
    }
  }
  if (written == 0) fail("there is no figure '{}' in the gallery", only);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes every figure over made-up data.");
  std::string folder = "gallery", only;
  std::vector<std::string> themes = figure::theme_names(), formats = {"png", "svg", "pdf"};
  bool stored = false;
  figure::SaveOptions options;
  app.add_option("folder", folder, "where to")->capture_default_str();
  app.add_option("--theme", themes, "light, dark, print");
  app.add_option("--format", formats, "png, svg, pdf");
  app.add_option("--figure", only, "one of them only");
  app.add_flag("--stored", stored, "only those with a reference picture");
  app.add_option("--dpi", options.dpi, "of PNG files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  set_warning_handler([](const std::string& text) { fmt::print(stderr, "warning: {}\n", text); });
  try {
    return run(folder, themes, formats, only, stored, options);
  } catch (const Error& error) {
    fmt::print(stderr, "figure_gallery: {}\n", error.what());
    return 1;
  }
}
