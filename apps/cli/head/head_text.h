// A head's page for a terminal.
#pragma once

#include <string>

#include "study/head/head_page.h"

namespace filigree::cli {

std::string head_text(const study::HeadPage& page);

}  // namespace filigree::cli
