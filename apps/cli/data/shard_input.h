// While commands are moved to studies, which have these.
#pragma once

#include "filigree/training_study.h"

namespace filigree::cli {

using study::check_shards_fit;
using study::copy_tokenizer;
using study::open_training_data;
using study::TrainingData;

}  // namespace filigree::cli
