#include "tests/faults/power_cut.h"

#include <fcntl.h>

#include <algorithm>
#include <fstream>

#include "filigree/error.h"
#include "filigree/random.h"

namespace filigree::faults {
namespace {

struct Node;
using Names = std::map<std::string, std::shared_ptr<Node>>;

// A file or a folder, now and as it is known to be on the disk.
struct Node {
  bool folder = false;
  std::string bytes, safe_bytes;
  Names names, safe_names;
  std::vector<Names> since;  // what the folder was like since it was flushed
};

struct Opened {
  std::shared_ptr<Node> node;
  std::size_t at = 0;
  bool append = false;
};

class Disk {
 public:
  explicit Disk(fs::path root) : root_path_(std::move(root)) { root_->folder = true; }

  void apply(const Operation& operation) {
    switch (operation.kind) {
      case 'O': return open(operation);
      case 'C': opened_.erase(operation.a); return;
      case 'W': return write(operation.a / 1000000, operation.bytes);
      case 'P':
        return write_at(operation.a / 1000000, static_cast<std::size_t>(operation.a % 1000000),
                        operation.bytes);
      case 'T':
        opened_.at(operation.a).node->bytes.resize(static_cast<std::size_t>(operation.b));
        return;
      case 'S': return flush(*opened_.at(operation.a).node);
      case 'M': {
        auto made = std::make_shared<Node>();
        made->folder = true;
        return put(operation.path, made);
      }
      case 'U': return put(operation.path, nullptr);
      case 'R': {
        const std::shared_ptr<Node> moved = find(operation.path);
        put(operation.path, nullptr);
        return put(operation.other, moved);
      }
      default: fail("the trace has an operation '{}'", operation.kind);
    }
  }

  Tree files(Survives survives, std::uint64_t seed) const {
    Tree tree;
    Random random(seed);
    collect(*root_, "", survives, random, tree);
    return tree;
  }

 private:
  void open(const Operation& operation) {
    std::shared_ptr<Node> node = find(operation.path);
    if (!node) {
      node = std::make_shared<Node>();
      put(operation.path, node);
    }
    if ((operation.b & O_TRUNC) != 0) node->bytes.clear();
    opened_[operation.a] = {node, 0, (operation.b & O_APPEND) != 0};
  }
  void write(long descriptor, const std::string& bytes) {
    Opened& file = opened_.at(descriptor);
    if (file.append) file.at = file.node->bytes.size();
    write_at(descriptor, file.at, bytes);
    file.at += bytes.size();
  }
  void write_at(long descriptor, std::size_t at, const std::string& bytes) {
    std::string& all = opened_.at(descriptor).node->bytes;
    all.resize(std::max(all.size(), at + bytes.size()));
    all.replace(at, bytes.size(), bytes);
  }
  static void flush(Node& node) {
    node.safe_bytes = node.bytes;
    node.safe_names = node.names;
    node.since.clear();
  }

  // The folder that a path lies in, and its last part.
  std::pair<std::shared_ptr<Node>, std::string> parent(const std::string& path) const {
    const fs::path below = fs::path(path).lexically_relative(root_path_);
    std::shared_ptr<Node> node = root_;
    for (const fs::path& part : below.parent_path()) {
      const auto found = node->names.find(part.string());
      require(found != node->names.end(), "the trace goes below '{}', which is not there", path);
      node = found->second;
    }
    return {node, below.filename().string()};
  }
  std::shared_ptr<Node> find(const std::string& path) const {
    if (fs::path(path) == root_path_) return root_;
    const auto [folder, name] = parent(path);
    const auto found = folder->names.find(name);
    return found == folder->names.end() ? nullptr : found->second;
  }
  void put(const std::string& path, const std::shared_ptr<Node>& node) {
    const auto [folder, name] = parent(path);
    folder->since.push_back(folder->names);
    if (node)
      folder->names[name] = node;
    else
      folder->names.erase(name);
  }

  void collect(const Node& folder, const std::string& prefix, Survives survives, Random& random,
               Tree& tree) const {
    Names names = survives == Survives::kFlushed ? folder.safe_names : folder.names;
    if (survives == Survives::kSome && !folder.since.empty())
      names = folder.since[random.below(static_cast<std::uint32_t>(folder.since.size()))];
    for (const auto& [name, node] : names) {
      const std::string path = prefix + name;
      if (node->folder) {
        collect(*node, path + "/", survives, random, tree);
      } else if (survives == Survives::kEverything) {
        tree[path] = node->bytes;
      } else {
        tree[path] = node->safe_bytes;
        const std::size_t more =
            node->bytes.size() - std::min(node->safe_bytes.size(), node->bytes.size());
        if (survives == Survives::kSome && more > 0)
          tree[path] = node->bytes.substr(
              0, node->safe_bytes.size() + random.below(static_cast<std::uint32_t>(more + 1)));
      }
    }
  }

  fs::path root_path_;
  std::shared_ptr<Node> root_ = std::make_shared<Node>();
  std::map<long, Opened> opened_;
};

}  // namespace

std::vector<Operation> read_trace(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<Operation> trace;
  std::string line;
  while (std::getline(in, line)) {
    Operation operation;
    std::size_t path = 0, other = 0;
    require(std::sscanf(line.c_str(), "%c %ld %ld %zu %zu", &operation.kind, &operation.a,
                        &operation.b, &path, &other) == 5,
            "'{}' is no trace", file.string());
    const auto take = [&](std::string& text, std::size_t length) {
      text.resize(length);
      in.read(text.data(), static_cast<std::streamsize>(length));
    };
    take(operation.path, path);
    take(operation.other, other);
    if (operation.kind == 'W' || operation.kind == 'P')
      take(operation.bytes, static_cast<std::size_t>(operation.b));
    trace.push_back(std::move(operation));
  }
  return trace;
}

Tree after_power_cut(const std::vector<Operation>& trace, std::size_t count, const fs::path& folder,
                     Survives survives, std::uint64_t seed) {
  Disk disk(folder);
  for (std::size_t i = 0; i < count; ++i) disk.apply(trace[i]);
  return disk.files(survives, seed);
}

}  // namespace filigree::faults
