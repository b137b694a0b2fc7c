// What Cairo's SVG lacks: the same names in every run, and a title.
#pragma once

#include <string>
#include <string_view>

namespace filigree::figure {

// Cairo names pictures after a counter of the whole process, so that the second figure of a program
// would differ from the first. Renumbers them in the order of their appearance, has them drawn
// with sharp cells, and adds `title`.
std::string clean_svg(std::string_view svg, std::string_view title);

}  // namespace filigree::figure
