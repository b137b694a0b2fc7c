#include "io/pickle.h"

#include <unordered_map>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// Far above what the state dict of any model has, and a bound of the memory that a hostile one
// takes.
constexpr std::size_t kMostValues = 2000000;
constexpr std::size_t kLongestText = 1 << 16;
constexpr std::size_t kMostDepth = 1 << 16;  // of the stack of marks

}  // namespace

// One pass over the operations.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, const std::string& label,
                const std::function<bool(std::string_view)>& allowed)
      : bytes_(bytes), label_(label), allowed_(allowed) {}

  Pickle run() {
    while (!step(byte())) {
    }
    if (stack_.empty()) wrong("ends without a value");
    pickle_.root_ = stack_.back();
    pickle_.size_ = at_;
    return std::move(pickle_);
  }

 private:
  using Id = Pickle::Id;
  using Kind = Pickle::Kind;
  using Value = Pickle::Value;

  [[noreturn]] void wrong(const std::string& what) const {
    fail("{}: the pickle {} (at its byte {})", label_, what, at_);
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size() - at_) wrong("is cut off");
    const auto part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }
  std::uint8_t byte() { return std::to_integer<std::uint8_t>(take(1)[0]); }
  std::uint64_t number(int bytes) {
    const auto part = take(static_cast<std::uint64_t>(bytes));
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(part[static_cast<std::size_t>(i)]);
    return value;
  }
  std::string text(std::uint64_t size) {
    if (size > kLongestText) wrong(fmt::format("has a text of {} bytes", size));
    const auto part = take(size);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::string line() {
    std::string found;
    for (char c = static_cast<char>(byte()); c != '\n'; c = static_cast<char>(byte())) {
      if (found.size() == kLongestText) wrong("has a line without an end");
      found += c;
    }
    return found;
  }

  void push(Value value) {
    if (pickle_.values_.size() == kMostValues)
      wrong(fmt::format("has more than {} values", kMostValues));
    stack_.push_back(static_cast<Id>(pickle_.values_.size()));
    pickle_.values_.push_back(std::move(value));
  }
  void push(Kind kind, std::int64_t integer = 0, std::string words = {}) {
    push(Value{kind, integer, std::move(words), {}});
  }
  Id pop() {
    if (stack_.size() <= floor()) wrong("takes more values than there are");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  // Values above the last mark lie on top of it.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<Id> pop_to_mark() {
    if (marks_.empty()) wrong("has no mark where it needs one");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Id> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  Value& top(Kind kind, const char* what) {
    if (stack_.size() <= floor()) wrong("takes more values than there are");
    Value& value = pickle_.values_[stack_.back()];
    if (value.kind != kind) wrong(fmt::format("adds to something that is no {}", what));
    return value;
  }

  void push_tuple(int count) {
    std::vector<Id> items(static_cast<std::size_t>(count));
    for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
    push({Kind::kTuple, 0, {}, std::move(items)});
  }
  void push_global(const std::string& name) {
    if (!allowed_(name))
      wrong(fmt::format("names '{}', which tensors do not need; nothing is executed",
                        printable(name, 100)));
    push(Kind::kGlobal, 0, name);
  }
  void push_long(std::uint64_t size) {
    const std::string digits = text(size);
    if (size > 8) return push(Kind::kInteger, 0, digits);
    std::uint64_t value = size > 0 && (digits.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = digits.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(digits[i]);
    push(Kind::kInteger, static_cast<std::int64_t>(value));
  }
  void call() {
    const Id arguments = pop(), function = pop();
    const Value& called = pickle_.values_[function];
    if (called.kind != Kind::kGlobal || pickle_.values_[arguments].kind != Kind::kTuple)
      wrong("calls something that is no function");
    // An empty one; others come with their items afterwards too.
    if (called.text == "collections OrderedDict") {
      if (!pickle_.values_[arguments].items.empty())
        wrong("makes an OrderedDict of something, which is not expected");
      return push(Kind::kDictionary);
    }
    push({Kind::kCalled, 0, {}, {function, arguments}});
  }
  void put(std::uint64_t index) {
    if (stack_.size() <= floor()) wrong("remembers a value that is not there");
    memo_[index] = stack_.back();
  }
  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) wrong(fmt::format("recalls value {}, which it did not keep", index));
    // The stack too is bounded, though no value is made.
    if (stack_.size() == kMostValues) wrong("has too many values at once");
    stack_.push_back(found->second);
  }

  // Whether it was the last operation.
  bool step(std::uint8_t code) {
    switch (code) {
      case 0x80:  // the protocol
        if (byte() > 5) wrong("is of a protocol above 5");
        break;
      case 0x95: take(8); break;  // a frame, which changes nothing
      case '.': return true;
      case '(':
        if (marks_.size() == kMostDepth) wrong("has too many marks");
        marks_.push_back(stack_.size());
        break;
      case '0': pop(); break;
      case '1': pop_to_mark(); break;
      case 'N': push(Kind::kNone); break;
      case 0x88: push(Kind::kBoolean, 1); break;
      case 0x89: push(Kind::kBoolean, 0); break;
      case 'J': push(Kind::kInteger, static_cast<std::int32_t>(number(4))); break;
      case 'K': push(Kind::kInteger, static_cast<std::int64_t>(number(1))); break;
      case 'M': push(Kind::kInteger, static_cast<std::int64_t>(number(2))); break;
      case 0x8a: push_long(number(1)); break;
      case 0x8b: push_long(number(4)); break;
      case 'G': take(8), push(Kind::kReal); break;
      case 'X': push(Kind::kText, 0, text(number(4))); break;
      case 0x8c: push(Kind::kText, 0, text(number(1))); break;
      case 0x8d: push(Kind::kText, 0, text(number(8))); break;
      case 'U': push(Kind::kText, 0, text(number(1))); break;
      case 'T': push(Kind::kText, 0, text(number(4))); break;
      case ')': push_tuple(0); break;
      case 0x85: push_tuple(1); break;
      case 0x86: push_tuple(2); break;
      case 0x87: push_tuple(3); break;
      case 't': push({Kind::kTuple, 0, {}, pop_to_mark()}); break;
      case ']': push(Kind::kList); break;
      case 'l': push({Kind::kList, 0, {}, pop_to_mark()}); break;
      case 'a': {
        const Id item = pop();
        top(Kind::kList, "list").items.push_back(item);
        break;
      }
      case 'e': append(Kind::kList, "list", pop_to_mark()); break;
      case '}': push(Kind::kDictionary); break;
      case 'd':
        push(Kind::kDictionary);
        append(Kind::kDictionary, "dictionary", below_top());
        break;
      case 's': {
        const Id value = pop(), key = pop();
        append(Kind::kDictionary, "dictionary", {key, value});
        break;
      }
      case 'u': append(Kind::kDictionary, "dictionary", pop_to_mark()); break;
      case 'c': {
        const std::string module = line();
        push_global(module + " " + line());
        break;
      }
      case 0x93: {
        const Id name = pop(), module = pop();
        if (pickle_.values_[name].kind != Kind::kText ||
            pickle_.values_[module].kind != Kind::kText)
          wrong("names a function by something that is no text");
        push_global(pickle_.values_[module].text + " " + pickle_.values_[name].text);
        break;
      }
      case 'R': call(); break;
      case 'b':  // attributes, which a dictionary of tensors does not need
        pop();
        top(Kind::kDictionary, "dictionary");
        break;
      case 'q': put(number(1)); break;
      case 'r': put(number(4)); break;
      case 0x94: put(memo_.size()); break;
      case 'h': get(number(1)); break;
      case 'j': get(number(4)); break;
      case 'Q': {
        const Id id = pop();
        push({Kind::kPersistent, 0, {}, {id}});
        break;
      }
      default: wrong(fmt::format("has the operation 0x{:02x}, which tensors do not need", code));
    }
    return false;
  }

  // For 'd', whose items lie above the last mark and below the dictionary just made.
  std::vector<Id> below_top() {
    const Id made = pop();
    std::vector<Id> items = pop_to_mark();
    stack_.push_back(made);
    return items;
  }
  void append(Kind kind, const char* what, const std::vector<Id>& items) {
    Value& to = top(kind, what);
    if (kind == Kind::kDictionary && items.size() % 2 != 0) wrong("has a key without a value");
    to.items.insert(to.items.end(), items.begin(), items.end());
  }

  std::span<const std::byte> bytes_;
  const std::string& label_;
  const std::function<bool(std::string_view)>& allowed_;
  std::size_t at_ = 0;
  Pickle pickle_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, Id> memo_;
};

Pickle Pickle::read(std::span<const std::byte> bytes, const std::string& label,
                    const std::function<bool(std::string_view)>& allowed) {
  return PickleMachine(bytes, label, allowed).run();
}

const Pickle::Value* Pickle::find(const Value& dictionary, std::string_view key) const {
  if (dictionary.kind != Kind::kDictionary) return nullptr;
  for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    const Value& found = at(dictionary.items[i]);
    if (found.kind == Kind::kText && found.text == key) return &at(dictionary.items[i + 1]);
  }
  return nullptr;
}

}  // namespace filigree
