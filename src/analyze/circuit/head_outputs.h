// What each head of a layer adds to the residual stream of a run, [B, T, heads, width].
//
// Mostly that is the tap attn.hook_result. Where a norm stands behind the attention (OLMo 2,
// Gemma 2), the layer adds
//
//   gain (sum over the heads of r_h + b) / s       s: the norm's denominator, ln1_post.hook_scale
//
// and a head's part is gain (r_h + b / heads) / s with the s of the same run, so that the parts of
// a run sum up to what its layer adds, whatever run it is. A head whose r_h changes changes s too,
// and by way of it the others' parts: those of a changed run are computed with that run's s.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analyze/circuit/replacements.h"
#include "filigree/layers.h"

namespace filigree {

class HeadOutputs {
 public:
  explicit HeadOutputs(const Model& model);

  // The tap whose name the outputs of a layer go by.
  static std::string tap(std::int64_t layer);

  // Has `keep` called with the outputs of a layer while the model runs, under that name.
  void watch(Taps& taps, std::int64_t layer, const TapWatcher& keep) const;

  // The same for taps that are observed: what must be observed in addition to these names, and the
  // outputs in the place of what was observed.
  std::set<std::string> with_scales(std::set<std::string> names) const;
  void finish(TapValues& values) const;

 private:
  struct Behind {
    NormWeights norm = kNoNorm;
    Variable bias;  // of the output projection; undefined: none
  };
  Tensor output(const Behind& behind, const Tensor& result, const Tensor& scale) const;

  std::vector<Behind> layers_;
};

}  // namespace filigree
