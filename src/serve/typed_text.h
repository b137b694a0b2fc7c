// The text that was last looked at in a model, with the keys, values and maps of its tokens. Typing
// goes on behind a text: what stands before is as it was, and only what is new is computed. Sums of
// other lengths are added up in another order, so that a text that was typed may differ from one
// that was pasted by rounding.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "filigree/layers.h"
#include "filigree/lens_study.h"
#include "filigree/study.h"

namespace filigree::serve {

// A weight of attention in 65535ths; what is not zero is at least one of them, what is no number is
// zero.
std::uint16_t stored_weight(float weight);

class TypedText {
 public:
  // Keeps texts whose keys and values take at most `bytes`.
  TypedText(const study::LoadedModel& model, std::size_t bytes);
  TypedText(const TypedText&) = delete;
  TypedText& operator=(const TypedText&) = delete;

  // Whether a text is short enough.
  bool takes(std::size_t tokens) const { return tokens <= capacity_; }
  // What a run of the text says. Only one thread at a time, as what follows.
  study::Prediction run(const std::vector<TokenId>& ids);
  // The weights of all heads, layer by layer, each a lower triangle row by row: the rows from
  // `first` on.
  std::vector<std::uint16_t> cells(std::size_t first = 0) const;
  // A name of the text that no other has had, in this process or another; "": there is none.
  std::string text() const { return names_.empty() ? "" : names_.back().text; }
  // Rows of the maps that are as they were in a text before, one of the last few; 0: in none.
  std::size_t same_since(const std::string& text) const;
  // Tokens that the last run computed.
  std::size_t computed() const { return computed_; }

 private:
  void see(std::int64_t layer, const Tensor& pattern);
  void forget_from(std::size_t token);
  void name_anew();

  struct NamedText {
    std::string text;
    std::size_t same;  // rows
  };

  const study::LoadedModel& model_;
  std::size_t capacity_;
  std::unique_ptr<KeyValueCache> cache_;  // none until there is a text
  std::vector<TokenId> ids_;
  std::size_t kept_ = 0;                           // tokens of the run at hand that were there
  std::vector<std::vector<std::uint16_t>> cells_;  // of each head
  std::vector<double> surprise_;                   // of each token after the first
  study::Prediction last_;
  std::size_t computed_ = 0;
  std::uint64_t begun_;  // with the process, at random
  std::uint64_t texts_ = 0;
  std::deque<NamedText> names_;  // the last is that of the text
};

}  // namespace filigree::serve
