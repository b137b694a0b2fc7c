// filigree prepare: text files of any size to token shards for training.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

std::string preparation_text(const study::Preparation& result) {
  Table table({{"split"},
               {"tokens", Align::kRight},
               {"documents", Align::kRight},
               {"text", Align::kRight},
               {"bytes/token", Align::kRight},
               {"shards", Align::kRight}});
  for (const SplitEntry& split : result.index.splits)
    table.add({split.name, with_thousands(split.tokens), with_thousands(split.documents),
               human_bytes(split.text_bytes),
               split.tokens == 0 ? "-"
                                 : fmt::format("{:.2f}", static_cast<double>(split.text_bytes) /
                                                             static_cast<double>(split.tokens)),
               std::to_string(split.shards.size())});
  return fmt::format("{}\n{}: vocabulary of {}; encoded in {}, {:.1f} MB/s\n", table.text(),
                     printable(result.out.string()), with_thousands(result.index.vocabulary),
                     format_seconds(result.seconds), result.megabytes_per_second());
}

void run_prepare(study::PreparationRequest request, const Session& session) {
  if (request.tokenizer.empty() == (request.vocabulary == 0))
    throw UsageError("give either --tokenizer DIR or --vocab N, which trains one on the texts");
  if (request.held_out_share && !request.held_out_texts.empty())
    throw UsageError("give the setting held-out-share or --held-out-text, not both");
  for (std::filesystem::path& text : request.texts)
    if (text == "-") text = "/dev/stdin";
  const study::Preparation result = study::run(request, {}, session.context());
  if (session.json())
    session.print_json(to_json(result));
  else
    session.print(preparation_text(result));
}

}  // namespace

void add_prepare(Program& program) {
  const auto request = std::make_shared<study::PreparationRequest>();
  CLI::App& app =
      program.add({"prepare",
                   "Turn text files into token shards for training.",
                   {"filigree prepare books.txt.xz wiki.txt --vocab 8192 --out shards",
                    "filigree prepare train.txt --held-out-text val.txt --vocab 8192 --out shards",
                    "zstdcat big.zst | filigree prepare - --tokenizer gpt2 --out shards"}},
                  [=](Session& session) { run_prepare(*request, session); });
  app.add_option("TEXT", request->texts,
                 "UTF-8 files, plain, .xz or .zst, documents separated by <|endoftext|>; - is "
                 "stdin")
      ->required();
  app.add_option("--out", request->out, "folder of the shards and the tokenizer")
      ->required()
      ->type_name("DIR");
  app.add_option("--tokenizer", request->tokenizer,
                 "folder of a tokenizer or of a model, or a model's name")
      ->type_name("DIR");
  app.add_option("--vocab", request->vocabulary, "train a tokenizer of so many tokens on the texts")
      ->check(whole_number(257, 1 << 24))
      ->type_name("N");
  app.add_option("--held-out-text", request->held_out_texts, "texts that are held out of training")
      ->type_name("FILE");
  app.add_flag("--replace-invalid", request->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
  app.add_flag("--force", request->force, "replace shards that are there");
  program.add_knobs(app, knobs_of(*request));
}

}  // namespace filigree::cli
