// A feature's page as HTML.
#pragma once

#include "filigree/feature_study.h"
#include "report/feature_sheet.h"

namespace filigree::study {

FeatureSheet sheet_of(const FeaturePage& page);

// "every 240th token", "0.42 %".
std::string frequency_text(double frequency);

}  // namespace filigree::study
