#include <algorithm>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/interventions.h"
#include "filigree/names.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

std::int64_t from_start(std::int64_t position, std::int64_t length) {
  return position < 0 ? position + length : position;
}

// Whether a text of `length` tokens has what a patch takes in a run of `run` tokens; throws Error.
void check_source(const Change& change, bool keys, std::int64_t length, std::int64_t run) {
  const TapPlace& place = change.place;
  if (!place.position || keys) {
    require(length == run, "'{}': the text to take from has {} tokens and the run {}; {}",
            place.text, length, run,
            keys ? "patterns need as many" : "say at which position, or give as many");
    return;
  }
  const std::int64_t there = from_start(*place.position, length);
  require(there >= 0 && there < length, "'{}': '{}' has no position {}; it has {} tokens",
          place.text, printable(change.prompt), *place.position, length);
}

// A place as for_ranges() takes it; only patterns and experts are told apart there.
PatchTarget target_of(const TapPlace& place, bool keys, std::int64_t position, std::int64_t key) {
  PatchTarget target;
  const bool experts = place.site == Site::kExpertOut;
  target.site = keys ? Site::kPattern : experts ? Site::kExpertOut : Site::kZ;
  target.head = place.head.value_or(-1), target.expert = place.expert.value_or(-1);
  target.position = position, target.key = key;
  return target;
}

}  // namespace

AppliedInterventions::AppliedInterventions(const Model& model, Interventions interventions)
    : interventions_(std::move(interventions)) {
  const NoGrad no_grad;
  std::map<std::vector<TokenId>, Taps> texts;  // those of patches, each run once
  for (const Change& change : interventions_.changes) {
    check_tap_place(change.place, model);
    require(change.place.position_token.empty() && change.place.key_token.empty(),
            "'{}': a token names a position only where one text is run; write a number, START or "
            "END",
            printable(change.place.text));
    std::vector<std::string> names;
    for (const std::string& name : model.tap_names())
      if (tap_matches(change.place.tap, name)) names.push_back(name);
    if (change.kind == ChangeKind::kPatch) {
      require(!change.ids.empty(), "the text of a patch, '{}', is empty", printable(change.prompt));
      texts[change.ids].observe(change.place.tap);
    }
    taps_.push_back(std::move(names));
  }
  // All positions, of the final norm too.
  for (auto& [ids, taps] : texts)
    model.forward(Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids),
                  {.taps = &taps});
  sources_.resize(taps_.size());
  for (std::size_t c = 0; c < taps_.size(); ++c)
    if (const Change& change = interventions_.changes[c]; change.kind == ChangeKind::kPatch)
      for (const std::string& name : taps_[c]) sources_[c][name] = texts.at(change.ids).value(name);
}

void AppliedInterventions::put_on(Taps& taps) {
  if (interventions_.empty()) return;
  taps.intervene("hook_embed", [this](const Variable& value) {
    total_ = first_ + value.size(1);
    return value;
  });
  for (std::size_t c = 0; c < taps_.size(); ++c)
    for (const std::string& tap : taps_[c])
      taps.intervene(tap, [this, c, tap](const Variable& value) { return changed(c, tap, value); });
}

void check_positions(const TapPlace& place, std::int64_t length) {
  for (const std::optional<std::int64_t>& position : {place.position, place.key})
    require(!position || (*position < length && *position >= -length),
            "'{}': there is no position {}; the run has {} tokens, 0 to {}", place.text,
            position.value_or(0), length, length - 1);
}

void check_fit(const Change& change, std::int64_t length) {
  check_positions(change.place, length);
  if (change.kind == ChangeKind::kPatch)
    check_source(change, is_over_keys(change.place.tap),
                 static_cast<std::int64_t>(change.ids.size()), length);
}

void AppliedInterventions::set_pass(std::int64_t first, std::int64_t length) {
  first_ = first;
  length_ = length;
  shorter_runs_ = true;
}

Variable AppliedInterventions::changed(std::size_t number, const std::string& tap,
                                       const Variable& value) const {
  const Change& change = interventions_.changes[number];
  const TapPlace& place = change.place;
  const Shape& shape = value.shape();
  const bool keys = is_over_keys(tap);
  const std::int64_t whole = length_.value_or(total_);
  // The positions of a value are the last ones of the pass.
  const std::int64_t first = total_ - (keys ? shape[2] : shape[1]);
  std::int64_t position = -1, key = -1;
  for (const bool is_key : {false, true}) {
    const std::optional<std::int64_t>& wanted = is_key ? place.key : place.position;
    if (!wanted) continue;
    const std::int64_t resolved = from_start(*wanted, whole);
    if (shorter_runs_ && (resolved >= total_ || (resolved < 0 && !length_))) return value;
    require(resolved >= 0 && resolved < total_,
            "'{}': there is no position {}; the run has {} tokens, 0 to {}", place.text, *wanted,
            whole, whole - 1);
    (is_key ? key : position) = resolved;
  }
  if (position >= 0 && position < first) return value;

  const auto factor = change.kind == ChangeKind::kScale ? static_cast<float>(change.factor) : 0.0f;
  Tensor factors = Tensor::full(shape, 1.0f), constants;
  const float* source = nullptr;
  std::int64_t source_end = 0, shift = 0;  // from a place in the run to that in the source
  if (change.kind == ChangeKind::kPatch) {
    const Tensor& values = sources_[number].at(tap);
    const std::int64_t length = values.size(keys ? 2 : 1);
    const bool one = position >= 0 && !keys;
    // What comes after the text of a growing run has nothing to take.
    if (!one && length_ && first >= length) return value;
    check_source(change, keys, length, keys ? total_ : whole);
    if (one)
      shift = (from_start(*place.position, length) - position) * (values.elements() / length);
    source = values.f32(), source_end = values.elements();
    constants = Tensor::zeros(shape);
  }
  const PatchTarget target = target_of(place, keys, position, key);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for_ranges(target, shape, row, 0, first,
               [&](std::int64_t offset, std::int64_t in_whole, std::int64_t count) {
                 const std::int64_t from = in_whole + shift;
                 if (keys) {  // what lies above the diagonal stays, minus infinity among it
                   const std::int64_t Tk = shape[3], query = in_whole / Tk % total_;
                   count = std::min(count, query + 1 - in_whole % Tk);
                   if (count <= 0) return;
                 }
                 if (source != nullptr && from + count > source_end) return;  // beyond the text
                 std::fill_n(factors.mutable_f32() + offset, count, factor);
                 if (source != nullptr)
                   std::copy_n(source + from, count, constants.mutable_f32() + offset);
               });
  const Variable kept = mul(value, Variable(factors));
  return source != nullptr ? add(kept, Variable(constants)) : kept;
}

}  // namespace filigree
