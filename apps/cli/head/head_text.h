// A head's page for a terminal.
#pragma once

#include <string>

#include "filigree/lens_study.h"

namespace filigree::cli {

std::string head_text(const study::HeadPage& page);

}  // namespace filigree::cli
