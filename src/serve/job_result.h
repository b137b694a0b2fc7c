// What a job leaves: its numbers, and figures that can be drawn in any format later.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "filigree/study_figures.h"
#include "serve/answer.h"

namespace filigree::serve {

struct KeptFigure {
  std::string title = {};
  std::function<void(const std::filesystem::path&, const study::FigureStyle&)> save = {};
};

struct JobResult {
  Json json = {};
  std::vector<KeptFigure> figures = {};  // as json["figures"] lists them

  // Keeps a figure, and puts it into the numbers in both themes, so that the page need not ask
  // again.
  template <typename Input>
  void add_figure(const std::string& title, Input input) {
    const auto kept = std::make_shared<const Input>(std::move(input));
    json["figures"].push_back(
        {{"title", title},
         {"svg", study::figure_svg(kept.get(), {.theme = study::FigureTheme::kLight})},
         {"dark_svg", study::figure_svg(kept.get(), {.theme = study::FigureTheme::kDark})}});
    figures.push_back({title, [kept](const auto& path, const auto& style) {
                         study::save_figure(kept.get(), path, style);
                       }});
  }
};

}  // namespace filigree::serve
