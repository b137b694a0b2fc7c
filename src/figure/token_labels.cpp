#include "figure/token_labels.h"

#include <algorithm>

namespace filigree::figure {

namespace {

constexpr double kTokenLabelGap = 2.5;

}  // namespace

TokenLabels::TokenLabels(const std::vector<std::string>& tokens, double cell, const Theme& theme,
                         double most) {
  style_ = {.size = std::clamp(cell * 0.78, 3.6, theme.small_size),
            .color = theme.muted,
            .align = Align::kRight,
            .vertical = VerticalAlign::kMiddle,
            .max_width = most};
  for (const std::string& token : tokens) {
    labels_.push_back(visible_token(token));
    room_ =
        std::max(room_, std::min(most, text_size(labels_.back(), style_).width) + kTokenLabelGap);
  }
}

void TokenLabels::draw_queries(Canvas& canvas, const Rect& map) const {
  const double cell = map.height / static_cast<double>(labels_.size());
  for (std::size_t i = 0; i < labels_.size(); ++i)
    canvas.text({map.x - kTokenLabelGap, map.y + (static_cast<double>(i) + 0.5) * cell}, labels_[i],
                style_);
}

void TokenLabels::draw_keys(Canvas& canvas, const Rect& map) const {
  const double cell = map.width / static_cast<double>(labels_.size());
  TextStyle turned = style_;
  turned.angle = 90;
  for (std::size_t j = 0; j < labels_.size(); ++j)
    canvas.text({map.x + (static_cast<double>(j) + 0.5) * cell, map.bottom() + kTokenLabelGap},
                labels_[j], turned);
}

}  // namespace filigree::figure
