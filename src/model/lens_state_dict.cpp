#include "model/lens_state_dict.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr std::string_view kTokenEmbedding = "embed.W_E";

// What stands before "embed.W_E", or nothing where no tensor is called so.
std::optional<std::string> prefix_of(const std::vector<TensorView>& tensors) {
  for (const TensorView& view : tensors) {
    if (!view.name.ends_with(kTokenEmbedding)) continue;
    const std::string prefix = view.name.substr(0, view.name.size() - kTokenEmbedding.size());
    if (prefix.empty() || prefix.ends_with('.')) return prefix;
  }
  return std::nullopt;
}

// The tensor with two neighbouring axes exchanged: [outer, a, b] -> [outer, b, a].
TensorView turned(const TensorView& view, std::size_t outer, const Extents& shape) {
  std::size_t blocks = 1;
  for (std::size_t i = 0; i < outer; ++i) blocks *= static_cast<std::size_t>(view.shape[i]);
  const auto a = static_cast<std::size_t>(view.shape[outer]);
  const auto b = static_cast<std::size_t>(view.shape[outer + 1]);
  const std::span<const std::byte> from = view.bytes();
  const std::size_t each = from.size() / std::max<std::size_t>(blocks * a * b, 1);
  const auto copy = std::make_shared<std::vector<std::byte>>(from.size());
  for (std::size_t block = 0; block < blocks; ++block)
    for (std::size_t i = 0; i < a; ++i)
      for (std::size_t j = 0; j < b; ++j)
        std::memcpy(copy->data() + ((block * b + j) * a + i) * each,
                    from.data() + ((block * a + i) * b + j) * each, each);
  TensorView result = view;
  result.shape = shape;
  result.data = *copy;
  result.owner = copy;
  result.check = nullptr;
  return result;
}

// Which way round the matrices of a state dict are.
class Layout {
 public:
  Layout(const std::vector<TensorView>& tensors, std::string source)
      : tensors_(tensors), source_(std::move(source)) {
    const TensorView& embedding = *find(kTokenEmbedding);
    require(embedding.shape.size() == 2, "'{}': tensor 'embed.W_E' is {}, which is no matrix",
            source_, shape_text(embedding.shape));
    // The width stands alone in some tensor of nearly every model.
    for (const char* name : {"pos_embed.W_pos", "blocks.0.attn.b_O", "blocks.0.mlp.b_out",
                             "blocks.0.ln1.w", "ln_final.w"})
      if (const TensorView* found = find(name);
          found != nullptr && !found->shape.empty() && width_ == 0)
        width_ = found->shape.back();
    if (width_ == 0) width_ = embedding.shape[1];
    require(embedding.shape[0] == width_ || embedding.shape[1] == width_,
            "'{}': tensor 'embed.W_E' is {}, but the width is {}", source_,
            shape_text(embedding.shape), width_);
    old_ = embedding.shape[1] != width_;
    if (const TensorView* query = find("blocks.0.attn.W_Q");
        query != nullptr && query->shape.size() == 3)
      heads_ = query->shape[0];
  }

  TensorView modern(const TensorView& view) const {
    const Extents& s = view.shape;
    const std::string_view name = view.name;
    const bool matrix = s.size() == 2, by_head = s.size() == 3;
    if (name == kTokenEmbedding) return rows_of_width(view);
    if (name == "unembed.W_U" && matrix) return columns_of(view, s[0] == width_, false);
    if (name.ends_with(".attn.W_Q") || name.ends_with(".attn.W_K") || name.ends_with(".attn.W_V"))
      return by_head && !(s[1] == width_ && !(old_ && s[2] == width_)) ? heads_turned(view) : view;
    if (name.ends_with(".attn.W_O")) {
      if (by_head && (s[2] != width_ || (old_ && s[1] == width_))) return heads_turned(view);
      if (matrix && heads_ > 0 && s[0] == width_ && s[1] % heads_ == 0)  // [d, heads d_head]
        return turned(view, 0, {heads_, s[1] / heads_, width_});
      return view;
    }
    if (name.ends_with(".mlp.W_in") || name.ends_with(".mlp.W_gate"))
      return matrix ? columns_of(view, s[0] == width_, old_ && s[0] == s[1]) : view;
    if (name.ends_with(".mlp.W_out") && matrix)
      return s[1] == width_ && !(old_ && s[0] == width_) ? view : turned_matrix(view);
    return view;
  }

 private:
  const TensorView* find(std::string_view name) const {
    for (const TensorView& view : tensors_)
      if (view.name == name) return &view;
    return nullptr;
  }
  TensorView turned_matrix(const TensorView& view) const {
    require(view.shape[0] == width_ || view.shape[1] == width_,
            "'{}': tensor '{}' is {}, no extent of which is the width {}", source_,
            printable(view.name), shape_text(view.shape), width_);
    return turned(view, 0, {view.shape[1], view.shape[0]});
  }
  TensorView heads_turned(const TensorView& view) const {
    require(view.shape[1] == width_ || view.shape[2] == width_,
            "'{}': tensor '{}' is {}, no extent of which is the width {}", source_,
            printable(view.name), shape_text(view.shape), width_);
    return turned(view, 1, {view.shape[0], view.shape[2], view.shape[1]});
  }
  TensorView rows_of_width(const TensorView& view) const {
    return old_ ? turned_matrix(view) : view;
  }
  TensorView columns_of(const TensorView& view, bool as_today, bool square_and_old) const {
    return as_today && !square_and_old ? view : turned_matrix(view);
  }

  const std::vector<TensorView>& tensors_;
  std::string source_;
  std::int64_t width_ = 0, heads_ = 0;
  bool old_ = false;  // W_E is [d, V]: so are matrices of which the shape does not tell
};

}  // namespace

bool has_transformer_lens_names(const std::vector<TensorView>& tensors) {
  return prefix_of(tensors).has_value();
}

std::vector<TensorView> lens_tensors(const std::vector<TensorView>& tensors,
                                     const std::string& source) {
  const std::string prefix = prefix_of(tensors).value_or("");
  std::vector<TensorView> named;
  for (const TensorView& view : tensors) {
    named.push_back(view);
    if (!prefix.empty() && view.name.starts_with(prefix))
      named.back().name = view.name.substr(prefix.size());
    require(!named.back().name.starts_with("attn_blocks."),
            "'{}': tensor '{}': state dicts with blocks called 'attn_blocks' are not read; rename "
            "them to 'blocks'",
            source, printable(view.name));
  }
  const Layout layout(named, source);
  std::vector<TensorView> modern;
  for (const TensorView& view : named) modern.push_back(layout.modern(view));
  return modern;
}

}  // namespace filigree
