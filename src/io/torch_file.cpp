#include "io/torch_file.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/pickle.h"
#include "io/zip_archive.h"

namespace filigree {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::size_t kMostMembers = 1000000;
// Tensors that share a storage may be copied more than once, but not without end: in sizes of the
// file.
constexpr std::size_t kMostCopies = 4;

// The number that files of the older format begin with, as its pickle has it.
constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kLegacyVersion = 1001;

struct NamedKind {
  std::string_view storage, type;  // nothing: of no known name
  TensorKind kind;
};
constexpr NamedKind kKinds[] = {
    {"torch FloatStorage", "torch float32", TensorKind::kF32},
    {"torch HalfStorage", "torch float16", TensorKind::kF16},
    {"torch BFloat16Storage", "torch bfloat16", TensorKind::kBf16},
    {"torch DoubleStorage", "torch float64", TensorKind::kF64},
    {"torch LongStorage", "torch int64", TensorKind::kI64},
    {"torch IntStorage", "torch int32", TensorKind::kI32},
    {"torch ShortStorage", "torch int16", TensorKind::kI16},
    {"torch CharStorage", "torch int8", TensorKind::kI8},
    {"torch ByteStorage", "torch uint8", TensorKind::kU8},
    {"torch BoolStorage", "torch bool", TensorKind::kBool},
};
constexpr std::string_view kUntyped = "torch.storage UntypedStorage";
constexpr std::string_view kRebuild = "torch._utils _rebuild_tensor_v2",
                           kRebuildTyped = "torch._utils _rebuild_tensor_v3",
                           kRebuildOld = "torch._utils _rebuild_tensor",
                           kParameter = "torch._utils _rebuild_parameter";

bool is_allowed(std::string_view global) {
  for (const NamedKind& known : kKinds)
    if (global == known.storage || global == known.type) return true;
  for (const std::string_view known : {kUntyped, kRebuild, kRebuildTyped, kRebuildOld, kParameter})
    if (global == known) return true;
  return global == "collections OrderedDict";
}

// What a tensor's storage is called and how it is made up.
struct Storage {
  std::string key;
  std::optional<TensorKind> kind;  // nothing: bytes
  std::int64_t count = 0;          // elements, or bytes

  std::size_t bytes() const {
    const std::size_t each = kind ? bits_of(*kind) / 8 : 1;
    return static_cast<std::size_t>(count) * each;
  }
};

// The content of a storage.
struct StoredData {
  std::span<const std::byte> bytes;
  std::shared_ptr<const ByteCheck> check;  // null: nothing to compare
};

// The dictionary of tensors in a pickle, with the places of their data filled in by `data_of`.
class StateDict {
 public:
  using DataOf = std::function<StoredData(const Storage&)>;

  // Copies into order may take `most_copied` bytes together.
  StateDict(const Pickle& pickle, std::string label, std::size_t most_copied)
      : pickle_(pickle), label_(std::move(label)), copies_left_(most_copied) {}

  std::vector<TensorView> tensors(const DataOf& data_of,
                                  const std::shared_ptr<const void>& owner) const {
    const Value& dictionary = find(pickle_.root(), 0);
    std::vector<TensorView> views;
    std::unordered_set<std::string_view> names;
    for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
      const Value &key = pickle_.at(dictionary.items[i]), &value = at(dictionary.items[i + 1]);
      if (key.kind != Kind::kText || !is_tensor(value)) continue;
      if (!names.insert(key.text).second)
        fail("{}: tensor '{}' appears twice", label_, printable(key.text));
      views.push_back(view_of(key.text, value, data_of, owner));
    }
    return views;
  }

  // Of every storage that a tensor of the pickle names, for files whose data have no names.
  std::map<std::string, Storage> storages() const {
    std::map<std::string, Storage> found;
    const Value& dictionary = find(pickle_.root(), 0);
    for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
      const Value& value = at(dictionary.items[i + 1]);
      if (!is_tensor(value)) continue;
      const Storage storage = storage_of(at(arguments(value).items.at(0)));
      const auto [first, inserted] = found.emplace(storage.key, storage);
      if (!inserted && (first->second.kind != storage.kind || first->second.count != storage.count))
        fail("{}: storage '{}' has two sizes or types", label_, printable(storage.key));
    }
    return found;
  }

 private:
  const Value& at(Pickle::Id id) const { return pickle_.at(id); }
  std::string_view function(const Value& called) const { return at(called.items[0]).text; }

  // A parameter is the tensor that it is made of.
  const Value& unwrapped(const Value& value) const {
    const bool wrapped = value.kind == Kind::kCalled && function(value) == kParameter &&
                         !at(value.items[1]).items.empty();
    return wrapped ? at(at(value.items[1]).items[0]) : value;
  }
  bool is_tensor(const Value& value) const {
    const Value& called = unwrapped(value);
    if (called.kind != Kind::kCalled) return false;
    const std::string_view name = function(called);
    return name == kRebuild || name == kRebuildOld || name == kRebuildTyped;
  }
  const Value& arguments(const Value& value) const {
    const Value& called = unwrapped(value);
    const Value& all = at(called.items[1]);
    const std::size_t least = function(called) == kRebuildTyped ? 7 : 4;
    require(all.items.size() >= least, "{}: a tensor is made of {} values, not of {}", label_,
            all.items.size(), least);
    return all;
  }

  const Value& find(const Value& value, int depth) const {
    require(value.kind == Kind::kDictionary && depth < 4,
            "{}: there is no dictionary of tensors in this file", label_);
    // Beside a model others keep tensors too, such as losses.
    for (const char* key : {"state_dict", "model_state_dict", "model", "module", "net", "weights"})
      if (const Value* inner = pickle_.find(value, key);
          inner != nullptr && inner->kind == Kind::kDictionary)
        return find(*inner, depth + 1);
    for (std::size_t i = 1; i < value.items.size(); i += 2)
      if (is_tensor(at(value.items[i]))) return value;
    fail("{}: there is no dictionary of tensors in this file", label_);
  }

  Storage storage_of(const Value& value) const {
    const Value* id = value.kind == Kind::kPersistent ? &at(value.items[0]) : nullptr;
    const bool fits =
        id != nullptr && id->kind == Kind::kTuple && id->items.size() >= 5 &&
        at(id->items[0]).text == "storage" && at(id->items[1]).kind == Kind::kGlobal &&
        at(id->items[2]).kind == Kind::kText && at(id->items[4]).kind == Kind::kInteger &&
        at(id->items[4]).text.empty() && at(id->items[4]).integer >= 0 &&
        at(id->items[4]).integer < (std::int64_t{1} << 50);
    require(fits, "{}: a tensor's storage is not described as torch.save does", label_);
    require(id->items.size() == 5 || at(id->items[5]).kind == Kind::kNone,
            "{}: storage '{}' is a view of another one, which is not supported; save the tensors "
            "with a newer PyTorch",
            label_, printable(at(id->items[2]).text));
    Storage storage{at(id->items[2]).text, std::nullopt, at(id->items[4]).integer};
    const std::string& type = at(id->items[1]).text;
    if (type == kUntyped) return storage;
    for (const NamedKind& known : kKinds)
      if (known.storage == type) storage.kind = known.kind;
    require(storage.kind.has_value(), "{}: '{}' is no kind of storage", label_, printable(type));
    return storage;
  }

  std::vector<std::int64_t> extents(const Value& tuple, std::string_view name) const {
    std::vector<std::int64_t> found;
    const bool fits = (tuple.kind == Kind::kTuple || tuple.kind == Kind::kList) &&
                      tuple.items.size() <= kMaxTensorRank;
    for (std::size_t i = 0; fits && i < tuple.items.size(); ++i) {
      const Value& extent = at(tuple.items[i]);
      if (extent.kind != Kind::kInteger || !extent.text.empty() || extent.integer < 0) break;
      found.push_back(extent.integer);
    }
    require(fits && found.size() == tuple.items.size(),
            "{}: tensor '{}' has extents or strides that are no list of numbers", label_,
            printable(name));
    return found;
  }

  TensorView view_of(const std::string& name, const Value& value, const DataOf& data_of,
                     const std::shared_ptr<const void>& owner) const {
    const Value& all = arguments(value);
    const Storage storage = storage_of(at(all.items[0]));
    TensorView view;
    view.name = name;
    const std::string label = fmt::format("{}: tensor '{}'", label_, printable(name));
    std::optional<TensorKind> kind = storage.kind;
    if (function(unwrapped(value)) == kRebuildTyped)
      for (const NamedKind& known : kKinds)
        if (known.type == at(all.items[6]).text) kind = known.kind;
    require(kind.has_value(), "{} has elements of a type that is not known", label);
    view.kind = *kind;
    view.shape = extents(at(all.items[2]), name);
    const std::vector<std::int64_t> strides = extents(at(all.items[3]), name);
    const Value& offset = at(all.items[1]);
    require(
        strides.size() == view.shape.size() && offset.kind == Kind::kInteger && offset.integer >= 0,
        "{}: extents, strides and offset do not fit together", label);
    const std::size_t bytes = tensor_bytes(label, view.kind, view.shape);
    const StoredData stored = data_of(storage);
    const std::span<const std::byte> data = stored.bytes;
    const std::size_t each = bits_of(view.kind) / 8;
    const auto room = static_cast<std::int64_t>(data.size() / each);
    // The last element that it reads.
    std::int64_t last = offset.integer;
    for (std::size_t i = 0; i < strides.size() && bytes > 0; ++i) {
      std::int64_t step = 0;
      require(!__builtin_mul_overflow(view.shape[i] - 1, strides[i], &step) &&
                  !__builtin_add_overflow(last, step, &last),
              "{}: strides that lead out of its storage", label);
    }
    require(bytes == 0 || last < room, "{} reads element {} of a storage that has {}", label, last,
            room);
    view.owner = owner;
    if (bytes == 0) return view;
    if (is_contiguous(view.shape, strides)) {
      view.data = data.subspan(static_cast<std::size_t>(offset.integer) * each, bytes);
      view.check = stored.check;
    } else {
      // One that repeats elements could be of any size.
      require(bytes <= data.size() && bytes <= copies_left_,
              "{} repeats elements of its storage; save a copy of it", label);
      copies_left_ -= bytes;
      if (stored.check != nullptr) stored.check->require(data);
      const auto copy = std::make_shared<std::vector<std::byte>>(bytes);
      gather(data.data() + static_cast<std::size_t>(offset.integer) * each, view.shape, strides,
             each, *copy);
      view.data = *copy;
      view.owner = copy;
    }
    return view;
  }

  static bool is_contiguous(const std::vector<std::int64_t>& shape,
                            const std::vector<std::int64_t>& strides) {
    std::int64_t expected = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1 && strides[i] != expected) return false;
      expected *= shape[i];
    }
    return true;
  }

  static void gather(const std::byte* from, const std::vector<std::int64_t>& shape,
                     const std::vector<std::int64_t>& strides, std::size_t each,
                     std::vector<std::byte>& to) {
    std::vector<std::int64_t> index(shape.size(), 0);
    std::int64_t at = 0;
    for (std::size_t done = 0; done < to.size(); done += each) {
      std::memcpy(to.data() + done, from + static_cast<std::size_t>(at) * each, each);
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        at += strides[axis];
        if (++index[axis] < shape[axis]) break;
        at -= strides[axis] * shape[axis];
        index[axis] = 0;
      }
    }
  }

  const Pickle& pickle_;
  std::string label_;
  mutable std::size_t copies_left_;
};

std::vector<TensorView> from_zip(std::span<const std::byte> bytes, const std::string& label,
                                 const std::shared_ptr<const void>& owner, ZipChecksums checksums) {
  const ZipArchive archive(bytes, label, "files of torch.save");
  std::map<std::string, ZipMember, std::less<>> members;
  std::string root;
  for (ZipMember& member : archive.members(kMostMembers)) {
    if (member.name.ends_with("/data.pkl")) {
      require(root.empty(), "{}: two entries are called data.pkl", label);
      root = member.name.substr(0, member.name.size() - 8);
    }
    std::string name = member.name;
    members.insert_or_assign(std::move(name), std::move(member));
  }
  require(!root.empty(), "{}: an archive without data.pkl, which files of torch.save have", label);
  std::map<std::string, StoredData> contents;  // tensors that share a storage share its check
  const auto content = [&](const std::string& name) -> const StoredData& {
    if (const auto known = contents.find(name); known != contents.end()) return known->second;
    const auto found = members.find(name);
    const std::string where = fmt::format("{}: entry '{}'", label, printable(name));
    require(found != members.end(), "{} is missing", where);
    require(found->second.method == 0, "{} is compressed, which torch.save does not do", where);
    StoredData data{archive.part(archive.content(found->second, where), found->second.size),
                    nullptr};
    if (checksums == ZipChecksums::kCompare)
      data.check = archive.check_of(found->second, where, owner);
    return contents.emplace(name, std::move(data)).first->second;
  };
  const auto whole = [&](const std::string& name) {
    const StoredData& data = content(name);
    if (data.check != nullptr) data.check->require(data.bytes);
    return data.bytes;
  };
  if (members.contains(root + "byteorder")) {
    const auto order = whole(root + "byteorder");
    const std::string_view text(reinterpret_cast<const char*>(order.data()), order.size());
    require(text == "little", "{}: numbers in the byte order '{}', not 'little', are not supported",
            label, printable(text));
  }
  const Pickle pickle = Pickle::read(whole(root + "data.pkl"), label, is_allowed);
  return StateDict(pickle, label, kMostCopies * bytes.size())
      .tensors(
          [&](const Storage& storage) {
            const StoredData& data = content(root + "data/" + storage.key);
            require(data.bytes.size() == storage.bytes(),
                    "{}: storage '{}' has {} bytes, not the {} that its tensors count on", label,
                    printable(storage.key), data.bytes.size(), storage.bytes());
            return data;
          },
          owner);
}

// Pickles of a magic number, a version, the machine, the dictionary and the keys of the storages,
// then each storage as a count and its elements.
std::vector<TensorView> from_pickles(std::span<const std::byte> bytes, const std::string& label,
                                     const std::shared_ptr<const void>& owner) {
  std::size_t at = 0;
  const auto next = [&] {
    Pickle pickle = Pickle::read(bytes.subspan(at), label, is_allowed);
    at += pickle.size();
    return pickle;
  };
  const Pickle magic = next();
  require(magic.root().kind == Kind::kInteger && magic.root().text == kLegacyMagic,
          "{}: neither a zip archive nor the older format of torch.save", label);
  require(next().root().integer == kLegacyVersion,
          "{}: not version {} of torch.save's older format", label, kLegacyVersion);
  const Pickle machine = next();
  const Value* little = machine.find(machine.root(), "little_endian");
  require(little == nullptr || little->integer == 1,
          "{}: numbers of a big-endian machine are not supported", label);
  const Pickle pickle = next();
  const Pickle keys = next();
  const StateDict state(pickle, label, kMostCopies * bytes.size());
  const std::map<std::string, Storage> storages = state.storages();
  std::map<std::string, std::span<const std::byte>, std::less<>> data;
  require(keys.root().kind == Kind::kList, "{}: there is no list of storages", label);
  for (const Pickle::Id id : keys.root().items) {
    const std::string& key = keys.at(id).text;
    const auto known = storages.find(key);
    require(known != storages.end(),
            "{}: storage '{}' belongs to no tensor of the dictionary, so that its size is unknown",
            label, printable(key));
    require(bytes.size() - at >= 8, "{}: storage '{}' is cut off", label, printable(key));
    std::uint64_t count = 0;
    std::memcpy(&count, bytes.data() + at, 8);
    at += 8;
    require(count == static_cast<std::uint64_t>(known->second.count) &&
                known->second.bytes() <= bytes.size() - at,
            "{}: storage '{}' has {} elements, not the {} that its tensors count on, or is cut off",
            label, printable(key), count, known->second.count);
    data[key] = bytes.subspan(at, known->second.bytes());
    at += known->second.bytes();
  }
  return state.tensors(
      [&](const Storage& storage) {
        const auto found = data.find(storage.key);
        require(found != data.end(), "{}: storage '{}' is missing", label, printable(storage.key));
        return StoredData{found->second, nullptr};
      },
      owner);
}

}  // namespace

bool has_torch_ending(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt";
}

TorchFile TorchFile::open(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, WhileMapped::kMustNotChange);
  return from_bytes(file->bytes(), path.string(), file);
}

TorchFile TorchFile::from_bytes(std::span<const std::byte> bytes, const std::string& source,
                                const std::shared_ptr<const void>& owner, ZipChecksums checksums) {
  const std::string label = fmt::format("PyTorch file '{}'", source);
  const bool zipped = bytes.size() >= 2 && std::to_integer<char>(bytes[0]) == 'P' &&
                      std::to_integer<char>(bytes[1]) == 'K';
  TorchFile file;
  file.tensors_ =
      zipped ? from_zip(bytes, label, owner, checksums) : from_pickles(bytes, label, owner);
  return file;
}

}  // namespace filigree
