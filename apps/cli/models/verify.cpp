// filigree verify: are the files still what was written?
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

std::string folder_line(const study::VerifiedFolder& folder) {
  const std::string name = printable(folder.folder, 400);
  if (!folder.problem.empty()) return fmt::format("{}: damaged\n  {}\n", name, folder.problem);
  if (!folder.checksums) return fmt::format("{}: there are no checksums here\n", name);
  std::uint64_t bytes = 0;
  std::string problems;
  for (const CheckedFile& file : folder.files) {
    bytes += file.bytes;
    if (!file.problem.empty())
      problems += fmt::format("  {} {}\n", printable(file.name), file.problem);
  }
  if (!problems.empty()) return fmt::format("{}: damaged\n{}", name, problems);
  return fmt::format("{}: whole, {} files, {}\n", name, folder.files.size(), human_bytes(bytes));
}

void run_verify(const study::VerificationRequest& request, Session& session) {
  const study::Verification result = study::run(request, {}, session.context());
  constexpr int kDamaged = 1;
  session.set_exit_code(result.damaged() ? kDamaged : result.checked_any() ? 0 : kOutOfReach);
  if (session.json()) return session.print_json(to_json(result));
  std::string text;
  for (const study::VerifiedFolder& folder : result.folders) text += folder_line(folder);
  session.print(text);
}

}  // namespace

void add_verify(Program& program) {
  const auto request = std::make_shared<study::VerificationRequest>();
  CLI::App& app = program.add(
      {"verify",
       "Compare the files of models, runs and shards with the checksums written beside them.",
       {"filigree verify dense-12x12", "filigree verify run shards",
        "filigree verify downloaded --write"}},
      [request](Session& session) { run_verify(*request, session); });
  app.add_option("FOLDER", request->folders,
                 "folders of models, runs or shards, or names of models")
      ->required();
  app.add_flag("--write", request->write,
               "first write the checksums of a model that came without, or was changed on purpose");
}

}  // namespace filigree::cli
