// What runs and sweeps leave to be read again: the state and checksums of a checkpoint, a run's
// log, a sweep's state, tasks, the configuration of a model, token shards. The first byte says
// which; the readers get the rest as a file, and where it ends in a checksum again with the right
// one, because no mutation keeps it.
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "analyze/task/user_task.h"
#include "base/checksum.h"
#include "base/scratch_folder.h"
#include "filigree/circuit.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/tokenizer.h"
#include "filigree/train.h"
#include "fuzz_target.h"
#include "io/folder_checksums.h"
#include "json/json.h"
#include "text/shard_file.h"
#include "train/run_log.h"

namespace filigree {
namespace {

// Each letter a token, so that tasks fit.
const Tokenizer& letters() {
  static const Tokenizer tokenizer = [] {
    nlohmann::json vocabulary = {{"\u0120", 26}};
    for (int i = 0; i < 26; ++i) vocabulary[std::string(1, static_cast<char>('a' + i))] = i;
    return Tokenizer::from_vocab_and_merges_text(vocabulary.dump(), "");
  }();
  return tokenizer;
}

constexpr std::size_t kShardHeader = 32;

std::string with_number(std::string_view bytes, std::size_t at, std::uint64_t number) {
  std::string all(bytes);
  std::memcpy(all.data() + at, &number, sizeof number);
  return all;
}
std::string with_right_checksum(char kind, std::string_view bytes) {
  if (kind == 'w' && bytes.size() >= 8)
    return with_number(bytes, bytes.size() - 8,
                       SweepKey().add(bytes.substr(0, bytes.size() - 8)).value());
  if (kind == 'f' && bytes.size() >= kShardHeader)
    return with_number(with_number(bytes, 24, xxh64(bytes.substr(kShardHeader))), 16,
                       (bytes.size() - kShardHeader) / 2);
  return std::string(bytes);
}

void read_shard(const std::filesystem::path& file, std::string_view bytes) {
  // As the index would have it, were it made of this file.
  ShardEntry entry;
  entry.file = file.filename().string();
  if (bytes.size() >= kShardHeader) {
    std::memcpy(&entry.tokens, bytes.data() + 16, 8);
    std::memcpy(&entry.checksum, bytes.data() + 24, 8);
  }
  const ShardFile shard(file, entry, 2);
  shard.verify(270);
  std::vector<TokenId> ids(shard.tokens());
  shard.read(0, ids);
  for (const TokenId id : ids) fuzz::expect(id >= 0 && id < 270, "ids are in the vocabulary");
}

void read(char kind, std::string_view text) {
  static const ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path();
  const auto file = [&](const char* name) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  };
  switch (kind) {
    case 's': file("state.json"), read_training_state(folder); break;
    case 'c':
      file(kChecksumsFile);
      for (const CheckedFile& checked : check_files(folder, ChecksumDepth::kContents))
        fuzz::expect(checked.name.find('/') == std::string::npos, "names stay in the folder");
      break;
    case 'w': {
      SweepState state(file("sweep"), false);
      fuzz::expect(state.steps() * 16 <= text.size(), "steps lie inside the file");
      state.section("scores", 1);
      break;
    }
    case 'l': {
      const std::filesystem::path log = file("log.jsonl");
      RunLog::resume(log, 3, {{"run", "fuzz"}});
      RunLog::resume(log, 3, {{"run", "fuzz"}});  // what it kept it reads
      break;
    }
    case 't': parse_task(text, "task", letters(), {}, 16); break;
    case 'm': parse_model_config(parse_json(text, "config.json"), "config.json"); break;
    case 'i': parse_shard_index(text, "index.json"); break;
    case 'f': read_shard(file("shard"), text); break;
    default: break;
  }
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const char kind = static_cast<char>(data[0]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string right = filigree::with_right_checksum(kind, bytes);
  for (const std::string_view text : {bytes, std::string_view(right)}) {
    if (text.data() == right.data() && right == bytes) break;
    try {
      filigree::read(kind, text);
    } catch (const filigree::Error& error) {
      filigree::fuzz::note_outcome(error.what());
    }
  }
  return 0;
}
