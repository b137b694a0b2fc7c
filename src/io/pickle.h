// Python's pickles read as data, for the few things that files of tensors need. Nothing is ever
// executed: a pickle is a program for a small machine, of which this one knows the operations that
// make numbers, texts, tuples, lists and dictionaries; names of functions stay names, and calling
// one makes a value that says which was called with what. Every other operation is refused by its
// number, and every function that the caller does not expect by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

class Pickle {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kBoolean,  // integer is 0 or 1
    kInteger,  // integer, or with more than 64 bits its bytes in `text`
    kReal,     // known to be there, not read
    kText,
    kTuple,       // items
    kList,        // items
    kDictionary,  // items: key, value, key, value, ...
    kGlobal,      // text: "module name"
    kCalled,      // items: a global and a tuple
    kPersistent,  // items: what stands for something outside of the pickle
  };
  using Id = std::uint32_t;  // of a value; values may hold themselves
  struct Value {
    Kind kind = Kind::kNone;
    std::int64_t integer = 0;
    std::string text = {};
    std::vector<Id> items = {};
  };

  // Reads the pickle that `bytes` begin with. `allowed` says which globals ("collections
  // OrderedDict") may be named. Throws Error starting with `label`.
  static Pickle read(std::span<const std::byte> bytes, const std::string& label,
                     const std::function<bool(std::string_view)>& allowed);

  const Value& root() const { return values_[root_]; }
  const Value& at(Id id) const { return values_[id]; }
  // Bytes that it took.
  std::size_t size() const { return size_; }

  // The value of a text key, or null.
  const Value* find(const Value& dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::vector<Value> values_;
  Id root_ = 0;
  std::size_t size_ = 0;
};

}  // namespace filigree
