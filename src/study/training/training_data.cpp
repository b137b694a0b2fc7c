#include "base/atomic_file.h"
#include "base/file_status.h"
#include "base/folders.h"
#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/tokenizer.h"
#include "filigree/training_study.h"
#include "io/folder_checksums.h"

namespace filigree::study {

TrainingData open_training_data(const std::string& shards, const std::string& held_out) {
  const TokenShards opened = TokenShards::open(shards);
  TrainingData data{shards, opened.index(), opened.split("train"), std::nullopt};
  require(data.train.tokens() > 1,
          "'{}' has no tokens to train on; prepare it again with more text or with less of it held "
          "out",
          printable(shards));
  if (held_out.empty()) {
    if (opened.has_split("held-out") && opened.split("held-out").tokens() > 1)
      data.held_out = opened.split("held-out");
    return data;
  }
  const TokenShards other = TokenShards::open(held_out);
  require(same_tokenizer(other.index(), opened.index()),
          "the held-out shards '{}' were made with another tokenizer than '{}'; prepare them with "
          "the tokenizer in '{}'",
          printable(held_out), printable(shards), printable(shards));
  require(
      other.index().vocabulary == opened.index().vocabulary,
      "the held-out shards '{}' have a vocabulary of {} tokens and '{}' one of {}; prepare them "
      "with the tokenizer in '{}'",
      printable(held_out), other.index().vocabulary, printable(shards), opened.index().vocabulary,
      printable(shards));
  data.held_out = other.split("held-out");
  require(
      data.held_out->tokens() > 1,
      "the held-out shards '{}' have no tokens in their split 'held-out'; prepare them with a text "
      "of its own for it",
      printable(held_out));
  return data;
}

void check_shards_fit(const ShardIndex& index, const std::string& shards,
                      const std::filesystem::path& folder, const ModelConfig& config) {
  if (!folder.empty() && has_tokenizer(folder))
    require(made_by(index, Tokenizer::from_folder(folder)),
            "'{}' was made with another tokenizer than that of the model '{}'; prepare the text "
            "again with the model's",
            printable(shards), printable(folder.string()));
  require(static_cast<std::int64_t>(index.vocabulary) <= config.vocabulary,
          "'{}' has a vocabulary of {} tokens, but the model '{}' only of {}; prepare the text "
          "again with the model's tokenizer",
          printable(shards), index.vocabulary, printable(folder.string()), config.vocabulary);
}

void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  // They are of the files as they were.
  const bool checked = has_checksums(to);
  if (checked) remove_file(to / kChecksumsFile);
  if (is_file(from) && has_tokenizer(from)) Tokenizer::from_folder(from).save_with_config(to);
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"}) {
    if (!is_file(from / name)) continue;
    AtomicFile copy(to / name);
    copy.write(MappedFile::open(from / name)->bytes());
    copy.commit();
  }
  if (checked) write_checksums(to, model_files_in(to));
}

}  // namespace filigree::study
