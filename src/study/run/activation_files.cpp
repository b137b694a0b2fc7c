#include "study/run/activation_files.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/output_folder.h"
#include "base/scratch_folder.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/npz.h"
#include "io/safetensors_writer.h"
#include "json/json.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* kActivationsIndex = "activations.json";

TensorKind kind_of_rows(const Tensor& rows) {
  return rows.dtype() == DType::kI32 ? TensorKind::kI32 : TensorKind::kF32;
}

std::vector<std::int64_t> extents_of(const Tensor& rows, std::int64_t count) {
  std::vector<std::int64_t> extents(rows.shape().extents().begin(), rows.shape().extents().end());
  extents[0] = count;
  return extents;
}

void require_same(const Tensor& a, const Tensor& b, const std::string& name) {
  require(a.dtype() == b.dtype() && extents_of(a, 0) == extents_of(b, 0),
          "activations of '{}' have another shape in another prompt; maps of a prompt's positions "
          "by its positions are written with 'attention --out'",
          name);
}

// One table of a single file while it grows.
struct GrowingTable {
  std::string name;
  Tensor like;  // its first rows, for the shape
  std::int64_t rows = 0;
  std::unique_ptr<AtomicFile> file = {};
};

class SingleFile : public ActivationFiles {
 public:
  explicit SingleFile(fs::path out) : out_(std::move(out)) {}

  void append(const std::vector<ActivationTable>& tables, std::int64_t) override {
    for (std::size_t i = 0; i < tables.size(); ++i) {
      if (i == tables_.size())
        tables_.push_back(
            {.name = tables[i].name,
             .like = tables[i].rows,
             .file = std::make_unique<AtomicFile>(scratch_.path() / std::to_string(i))});
      GrowingTable& table = tables_[i];
      require_same(table.like, tables[i].rows, table.name);
      table.file->write(std::span(tables[i].rows.raw(), tables[i].rows.bytes()));
      table.rows += tables[i].rows.size(0);
    }
  }

  std::uint64_t finish(const Json& about) override {
    std::vector<std::shared_ptr<const MappedFile>> mapped;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tables_[i].file->commit();
      mapped.push_back(MappedFile::open(scratch_.path() / std::to_string(i)));
    }
    out_.extension() == ".npz" ? write_as_npz(mapped, about) : write_as_safetensors(mapped, about);
    return bytes_of_file(out_);
  }

 private:
  void write_as_npz(const std::vector<std::shared_ptr<const MappedFile>>& mapped,
                    const Json& about) const {
    constexpr std::size_t kPart = std::size_t{1} << 24;
    NpzWriter npz(out_);
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const GrowingTable& table = tables_[i];
      npz.begin(table.name, kind_of_rows(table.like), extents_of(table.like, table.rows));
      const std::span<const std::byte> bytes = mapped[i]->bytes();
      for (std::size_t at = 0; at < bytes.size(); at += kPart) {
        const auto part = bytes.subspan(at, std::min(kPart, bytes.size() - at));
        npz.write(part);
        mapped[i]->release(part);
      }
    }
    npz.add_text("meta.json", about.dump());
    npz.commit();
  }

  void write_as_safetensors(const std::vector<std::shared_ptr<const MappedFile>>& mapped,
                            const Json& about) const {
    std::vector<TensorToWrite> tensors;
    for (std::size_t i = 0; i < tables_.size(); ++i)
      tensors.push_back(tensor_to_write(tables_[i].name, kind_of_rows(tables_[i].like),
                                        extents_of(tables_[i].like, tables_[i].rows),
                                        mapped[i]->bytes()));
    write_safetensors(out_, std::move(tensors), {{"filigree", about.dump()}});
  }

  fs::path out_;
  ScratchFolder scratch_;
  std::vector<GrowingTable> tables_;
};

class ShardFolder : public ActivationFiles {
 public:
  ShardFolder(fs::path out, std::int64_t shard_bytes)
      : folder_(std::move(out)), shard_bytes_(static_cast<std::uint64_t>(shard_bytes)) {
    for (const FolderEntry& entry : entries_of(folder_.path()))
      require(entry.name != kActivationsIndex && !entry.name.ends_with(".safetensors"),
              "'{}' has activations already; choose another folder or remove it",
              printable(folder_.path().string()));
  }

  void append(const std::vector<ActivationTable>& tables, std::int64_t prompts) override {
    std::uint64_t bytes = 0;
    for (const ActivationTable& table : tables) bytes += table.rows.bytes();
    if (!parts_.empty() && held_ + bytes > shard_bytes_) write_shard();
    if (!parts_.empty())
      for (std::size_t i = 0; i < tables.size(); ++i)
        require_same(parts_[0][i].rows, tables[i].rows, tables[i].name);
    parts_.push_back(tables);
    held_ += bytes, prompts_ += prompts;
  }

  std::uint64_t finish(const Json& about) override {
    if (!parts_.empty()) write_shard();
    Json index = about;
    index["shards"] = shards_;
    write_file_atomically(folder_.path() / kActivationsIndex, index.dump(2) + "\n");
    return written_;
  }

 private:
  void write_shard() {
    std::vector<TensorToWrite> tensors;
    std::vector<std::byte> together;  // of the table whose turn it is
    for (std::size_t i = 0; i < parts_[0].size(); ++i) {
      std::int64_t rows = 0;
      for (const auto& part : parts_) rows += part[i].rows.size(0);
      rows_ = rows;
      tensors.push_back({parts_[0][i].name, kind_of_rows(parts_[0][i].rows),
                         extents_of(parts_[0][i].rows, rows), [this, i, &together] {
                           together.clear();
                           for (const auto& part : parts_)
                             together.insert(together.end(), part[i].rows.raw(),
                                             part[i].rows.raw() + part[i].rows.bytes());
                           return std::span<const std::byte>(together);
                         }});
    }
    const std::string name = fmt::format("activations-{:05}.safetensors", shards_.size());
    write_safetensors(folder_.path() / name, std::move(tensors));
    written_ += bytes_of_file(folder_.path() / name);
    shards_.push_back({{"file", name}, {"prompts", prompts_}, {"rows", rows_}});
    parts_.clear();
    held_ = 0, prompts_ = 0;
  }

  OutputFolder folder_;
  std::uint64_t shard_bytes_;
  std::vector<std::vector<ActivationTable>> parts_;  // of the shard that is being filled
  std::uint64_t held_ = 0, written_ = 0;
  std::int64_t prompts_ = 0, rows_ = 0;
  Json shards_ = Json::array();
};

}  // namespace

std::unique_ptr<ActivationFiles> ActivationFiles::create(const fs::path& out,
                                                         std::int64_t shard_bytes) {
  const std::string ending = out.extension().string();
  if (ending == ".npz" || ending == ".safetensors") return std::make_unique<SingleFile>(out);
  if (!ending.empty())
    throw RequestError(fmt::format(
        "activations are written to .npz, .safetensors or a folder of shards, not to '{}'",
        printable(out.string())));
  return std::make_unique<ShardFolder>(out, shard_bytes);
}

}  // namespace filigree::study
