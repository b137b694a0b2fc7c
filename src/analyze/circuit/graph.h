// A model as a graph of components: what each writes to the residual stream and who reads it.
//
// Nodes write: the input (embeddings), each head, each MLP. Inputs read: q of each head, k and v of
// each key head, each MLP, the logits. Since the residual stream is a sum, an input reads
//
//   in_v = x_input + sum over the heads and MLPs before it of x_u (+ biases of attention outputs)
//
// and every pair (u, v) is an edge that can be patched or kept on its own. GPT-2 small has 32,491.
// What a head writes where a norm stands behind the attention: head_outputs.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filigree/model.h"
#include "filigree/names.h"

namespace filigree {

// What an input feeds.
enum class Branch { kQuery, kKey, kValue, kMlp, kLogits };

struct ComponentInput {
  Branch branch = Branch::kLogits;
  std::int64_t layer = 0;   // of kLogits: the last one
  std::int64_t head = -1;   // of kKey and kValue: the key head
  std::int64_t before = 0;  // it reads the nodes [0, before)
  std::int64_t first = 0;   // edge number of its first node; edges of an input are neighbours
};

struct ComponentEdge {
  std::int64_t node = 0, input = 0;  // indices
  friend bool operator==(const ComponentEdge&, const ComponentEdge&) = default;
};

class ComponentGraph {
 public:
  explicit ComponentGraph(const ModelConfig& config);

  // In the order in which a run computes them.
  const std::vector<Component>& nodes() const { return nodes_; }
  const std::vector<ComponentInput>& inputs() const { return inputs_; }
  std::int64_t edges() const { return edges_; }
  std::int64_t heads() const { return heads_; }
  std::int64_t key_heads() const { return key_heads_; }
  std::int64_t layers() const { return layers_; }
  // Whether an MLP reads the stream that the attention of its layer reads, and not what it wrote.
  bool parallel() const { return parallel_; }
  // Whether layers have MLPs; else they are attention alone.
  bool has_mlps() const { return mlps_ > 0; }

  ComponentEdge edge(std::int64_t number) const;
  std::int64_t number(const ComponentEdge& edge) const;

  std::int64_t head_node(std::int64_t layer, std::int64_t head) const;
  // Of a graph with MLPs.
  std::int64_t mlp_node(std::int64_t layer) const { return head_node(layer, heads_); }
  // Throws Error when the graph has no such input.
  std::int64_t input(Branch branch, std::int64_t layer = 0, std::int64_t head = 0) const;
  std::int64_t logits() const { return static_cast<std::int64_t>(inputs_.size()) - 1; }
  // The nodes that an input feeds: one head, the heads that share a key head, or an MLP; none for
  // the logits.
  std::vector<std::int64_t> fed_by(std::int64_t index) const;
  // The inputs of a node: none for the input.
  std::vector<std::int64_t> inputs_of(std::int64_t index) const;

  std::string node_text(std::int64_t index) const;   // as filigree/names.h writes it
  std::string input_text(std::int64_t index) const;  // "L3H7 q", "L3 MLP", "logits"
  std::string edge_text(std::int64_t number) const;  // "L0H1 -> L1H0 k"

  // The edges among `kept` (numbers) on a path from the input to the logits, in the same order:
  // nothing reaches the others, or they reach nothing. A head passes on what any of its inputs
  // brings.
  std::vector<std::int64_t> connected(const std::vector<std::int64_t>& kept) const;

 private:
  std::int64_t layers_, heads_, key_heads_;
  std::int64_t mlps_;  // a layer: one, or none
  bool parallel_;
  std::vector<Component> nodes_;
  std::vector<ComponentInput> inputs_;
  std::int64_t edges_ = 0;
};

}  // namespace filigree
