// Makes new inputs out of old ones: flipped bits, set bytes, integers at the edges of their types,
// inserted, erased, repeated and exchanged ranges, spliced inputs, words of a dictionary. The same
// seed and the same calls give the same inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace filigree::fuzz {

class Mutator {
 public:
  Mutator(std::uint64_t seed, std::size_t max_length, std::vector<std::string> dictionary);

  // Remembers an input as a starting point.
  void add(std::string input);
  std::size_t pool_size() const { return pool_.size(); }

  // One remembered input with one to some dozen changes, at most max_length bytes.
  std::string next();

 private:
  std::uint64_t random();
  std::size_t below(std::size_t bound);  // 0 when bound is 0
  void change(std::string& input);
  void set_integer(std::string& input);
  void change_number(std::string& input);
  void insert(std::string& input, std::string_view piece);
  std::string_view piece_of(std::string_view input, std::size_t longest);

  std::uint64_t state_;
  std::size_t max_length_;
  std::vector<std::string> dictionary_;
  std::vector<std::string> pool_;
};

// The words of a dictionary in libFuzzer's form: lines of name="word" or "word" with \\, \" and
// \xAB escapes; other lines are comments. Throws std::runtime_error on a word that does not end.
std::vector<std::string> parse_dictionary(std::string_view text);

}  // namespace filigree::fuzz
