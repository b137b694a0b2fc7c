// What a model that was written anew is, printed.
#pragma once

#include "apps/cli/program/session.h"
#include "filigree/model_study.h"

namespace filigree::cli {

void print_conversion(const study::Conversion& result, const Session& session);

}  // namespace filigree::cli
