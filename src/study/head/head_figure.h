// A head's page as a figure, and the model that a twin is looked for in.
#pragma once

#include <optional>
#include <string>

#include "study/figures.h"
#include "study/head/head_page.h"

namespace filigree::study {

figure::HeadPage figure_of(const HeadPage& page);

// Of a bundled model "dense-NAME" its "sparse-NAME", and the other way round, where there is one.
std::optional<std::string> counterpart(const std::string& model);

}  // namespace filigree::study
