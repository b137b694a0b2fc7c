// `filigree task corpus`: writes the synthetic corpus of the tasks.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <string>

#include "apps/cli/program/session.h"
#include "filigree/model_study.h"

namespace filigree::cli {

struct CorpusCommand {
  std::string out, size, mix;
  std::int64_t documents = 0;
  DataSplit split = DataSplit::kTrain;
};

void add_corpus_options(CLI::App& app, CorpusCommand& command);

// Lists the tasks of the corpus where nothing says what to write.
void run_corpus(const CorpusCommand& command, const Session& session);

}  // namespace filigree::cli
