#include <fmt/format.h>

#include <algorithm>

#include "base/file_status.h"
#include "base/mapped_file.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {
namespace {

// More bytes than a token stands for, so that a prefix of so many a token is enough.
constexpr std::int64_t kBytesPerToken = 32;

// The first bytes of a text, cut where a character ends.
std::string_view prefix_of(std::string_view text, std::int64_t tokens) {
  std::size_t end = std::min(text.size(), static_cast<std::size_t>(tokens * kBytesPerToken));
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end);
}

std::vector<TokenId> ids_of_file(const LoadedModel& model, const std::filesystem::path& file,
                                 std::int64_t tokens) {
  const std::string source = fmt::format("'{}'", printable(file.string()));
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file);
  std::vector<TokenId> ids =
      encode_text(model.tokenizer(), prefix_of(mapped->text(), tokens), source);
  require(!ids.empty(), "{} is empty; there is nothing to look at heads on", source);
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(tokens)));
  return ids;
}

std::vector<TokenId> ids_of_tasks(const LoadedModel& model, std::int64_t tokens,
                                  std::uint64_t seed) {
  std::string text;
  Corpus({.seed = seed, .split = DataSplit::kHeldOut})
      .write(0, static_cast<std::uint64_t>(tokens * kBytesPerToken),
             [&](std::string_view block) { text += block; });
  std::vector<TokenId> ids = encode_text(model.tokenizer(), prefix_of(text, tokens), "the tasks");
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(tokens)));
  return ids;
}

}  // namespace

std::optional<std::filesystem::path> find_held_out_text(
    std::span<const std::filesystem::path> model_folders) {
  std::vector<std::filesystem::path> folders(model_folders.begin(), model_folders.end());
  if (const auto bundled = find_named_model(kReferenceDense)) folders.push_back(*bundled);
  for (const std::filesystem::path& folder : folders)
    if (is_file(folder / kHeldOutFile)) return folder / kHeldOutFile;
  return std::nullopt;
}

SampleText sample_text(const LoadedModel& model, const std::filesystem::path& file,
                       std::int64_t tokens, std::uint64_t seed) {
  SampleText sample;
  if (!file.empty()) {
    sample.ids = ids_of_file(model, file, tokens);
    sample.source = fmt::format("'{}'", printable(file.string()));
  } else {
    const std::filesystem::path own[] = {model.folder()};
    const auto prose = find_held_out_text(own);
    if (prose) sample.ids = ids_of_file(model, *prose, tokens / 2);
    const std::vector<TokenId> tasks =
        ids_of_tasks(model, tokens - static_cast<std::int64_t>(sample.ids.size()), seed);
    sample.ids.insert(sample.ids.end(), tasks.begin(), tasks.end());
    sample.source = prose ? fmt::format("{} and sentences of the tasks", kHeldOutFile)
                          : "sentences of the tasks";
  }
  check_ids(sample.ids, model.config().vocabulary, model.name());
  return sample;
}

}  // namespace filigree::study
