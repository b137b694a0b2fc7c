// The commands under `filigree features`, one file each.
#pragma once

namespace filigree::cli {

class Program;

void add_features_train(Program& program);
void add_features_index(Program& program);
void add_features_show(Program& program);

}  // namespace filigree::cli
