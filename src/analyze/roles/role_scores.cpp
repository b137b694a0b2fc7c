#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/roles.h"

namespace filigree {
namespace {

constexpr std::int64_t kFirstRow = 2;

// (share - even) / (1 - even) from the masses, 0 where nothing is left to tell.
double excess(double mass, double even, double total) {
  const double room = total - even;
  return room > 1e-9 * total && total > 0.0 ? std::clamp((mass - even) / room, 0.0, 1.0) : 0.0;
}

void grow(std::vector<double>& values, std::int64_t size) {
  if (values.size() < static_cast<std::size_t>(size))
    values.resize(static_cast<std::size_t>(size), 0.0);
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

RoleText text_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::kInduction:
    case Pattern::kDuplicate:
    case Pattern::kNextToMatch: return RoleText::kRepeated;
    case Pattern::kNameMover:
    case Pattern::kNegativeNameMover:
    case Pattern::kNameReader:
    case Pattern::kDuplicateName: return RoleText::kNames;
    default: return RoleText::kPrompts;
  }
}

void RoleScores::set_copying(const NameCopying& found, const RoleThresholds& thresholds) {
  require(found.vocabulary > 0 && found.names > 0, "roles: the rank of {} names among {} tokens",
          found.names, found.vocabulary);
  copying = found;
  const auto vocabulary = static_cast<double>(found.vocabulary);
  const double raised = thresholds.copied_share * vocabulary;
  double& read = (*this)[Pattern::kNameReader];
  if (found.median_rank <= std::max(raised, 1.0))
    std::swap(read, (*this)[Pattern::kNameMover]);
  else if (found.median_rank > vocabulary - std::max(raised, 1.0))
    std::swap(read, (*this)[Pattern::kNegativeNameMover]);
}

std::int64_t RoleScores::rows_of(Pattern pattern) const {
  switch (text_of(pattern)) {
    case RoleText::kRepeated: return repeated_rows_with_mass;
    case RoleText::kNames: return name_rows_with_mass;
    case RoleText::kPrompts: break;
  }
  return pattern == Pattern::kEmpty ? rows : rows_with_mass;
}

void RoleAccumulator::add(std::span<const float> weights, std::int64_t length,
                          const std::vector<bool>& delimiters) {
  require(length >= 0 && weights.size() == at(length) * at(length),
          "roles: {} weights for a map of {} tokens", weights.size(), length);
  grow(even_, length);
  grow(offsets_, length);
  grow(fragments_by_offset_, length);
  scan(weights, length);
  find_stripes(length);
  find_fragments(length);
  if (!delimiters.empty()) find_delimiters(weights, length, delimiters);
}

void RoleAccumulator::find_delimiters(std::span<const float> weights, std::int64_t length,
                                      const std::vector<bool>& delimiters) {
  require(delimiters.size() == at(length), "roles: delimiters of {} tokens for a map of {}",
          delimiters.size(), length);
  std::int64_t so_far = 0;  // up to key i
  for (std::int64_t i = 1; i < length; ++i) {
    if (delimiters[at(i)]) ++so_far, ++delimiters_;
    if (i < kFirstRow || !(row_mass_[at(i)] > 0.0)) continue;
    delimiter_even_ += row_mass_[at(i)] * static_cast<double>(so_far) / static_cast<double>(i + 1);
    for (std::int64_t j = 1; j <= i; ++j)
      if (delimiters[at(j)]) delimiter_mass_ += static_cast<double>(weights[at(i * length + j)]);
  }
}

void RoleAccumulator::add_names(std::span<const float> weights, std::int64_t length,
                                std::int64_t receiver, std::int64_t first, std::int64_t second) {
  const auto inside = [&](std::int64_t place) { return place >= 0 && place < length - 1; };
  require(weights.size() == at(length) * at(length) && inside(receiver) && inside(first) &&
              inside(second) && receiver != first && first < second,
          "roles: {} weights for a sentence of {} tokens with names at {}, {} and {}",
          weights.size(), length, receiver, first, second);
  const float* row = weights.data() + (length - 1) * length;
  double mass = 0.0;
  for (std::int64_t j = 0; j < length; ++j) mass += static_cast<double>(row[j]);
  ++name_rows_;
  if (mass >= thresholds_.empty_row_mass) ++name_rows_with_mass_;
  name_mass_ += mass;
  name_even_ += mass / static_cast<double>(length);
  first_names_ += static_cast<double>(row[receiver]) + static_cast<double>(row[first]);
  second_name_ += static_cast<double>(row[second]);
}

// One pass over the cells: what needs no second look is summed, the rest is noted.
void RoleAccumulator::scan(std::span<const float> weights, std::int64_t length) {
  row_mass_.assign(at(length), 0.0);
  column_mass_.assign(at(length), 0.0);
  column_strong_.assign(at(length), 0);
  strong_.clear();
  for (std::int64_t i = kFirstRow; i < length; ++i) {
    const float* row = weights.data() + i * length;
    double mass = 0.0;
    for (std::int64_t j = 0; j <= i; ++j) mass += static_cast<double>(row[j]);
    ++rows_;
    row_mass_[at(i)] = mass;
    if (!(mass > 0.0)) continue;
    if (mass >= thresholds_.empty_row_mass) ++rows_with_mass_;
    const double even = mass / static_cast<double>(i + 1);
    mass_ += mass;
    even_[at(i)] += even;
    sink_ += static_cast<double>(row[0]);
    current_ += static_cast<double>(row[i]);
    previous_ += static_cast<double>(row[i - 1]);
    const auto even_weight = static_cast<float>(even);
    float common = 0.0f;
    for (std::int64_t j = 0; j <= i; ++j) common += std::min(row[j], even_weight);
    common_ += static_cast<double>(common);
    double* by_offset = offsets_.data() + i;
    for (std::int64_t j = 1; j <= i; ++j) by_offset[-j] += static_cast<double>(row[j]);
    const auto strong = static_cast<float>(
        std::max(thresholds_.strong_share * mass, thresholds_.strong_over_even * even));
    for (std::int64_t j = 1; j <= i - 2; ++j) {
      column_mass_[at(j)] += static_cast<double>(row[j]);
      if (row[j] < strong) continue;
      ++column_strong_[at(j)];
      strong_.push_back({i, j, row[j]});
    }
  }
}

void RoleAccumulator::find_stripes(std::int64_t length) {
  is_stripe_.assign(at(length), false);
  std::int64_t rows_after = 0;  // with mass, from j + 2 on
  for (std::int64_t j = length - 3; j >= 1; --j) {
    if (row_mass_[at(j + 2)] >= thresholds_.empty_row_mass) ++rows_after;
    if (rows_after < thresholds_.stripe_fewest_rows) continue;
    is_stripe_[at(j)] = static_cast<double>(column_strong_[at(j)]) >=
                        thresholds_.stripe_rows * static_cast<double>(rows_after);
    if (is_stripe_[at(j)]) stripes_ += column_mass_[at(j)];
  }
  std::int64_t stripes_so_far = 0;  // of keys up to i - 2
  for (std::int64_t i = kFirstRow + 1; i < length; ++i) {
    if (is_stripe_[at(i - 2)]) ++stripes_so_far;
    stripes_even_ +=
        row_mass_[at(i)] * static_cast<double>(stripes_so_far) / static_cast<double>(i + 1);
  }
}

// Chance: the strong cells of each row thrown anew onto the row's keys 1 .. i - 2.
void RoleAccumulator::find_fragments(std::int64_t length) {
  std::vector<double> expected(at(length) + 1, 0.0);  // strong cells on offset k
  std::vector<std::int64_t> found(at(length), 0);
  std::vector<double> mass(at(length), 0.0);
  for (const StrongCell& cell : strong_) {
    if (is_stripe_[at(cell.key)]) continue;
    expected[at(cell.row - 1)] += 1.0 / static_cast<double>(cell.row - 2);
    ++found[at(cell.row - cell.key)];
    mass[at(cell.row - cell.key)] += static_cast<double>(cell.weight);
  }
  std::vector<bool> busy(at(length) + 1, false);
  for (std::int64_t k = length - 2; k >= 2; --k) {
    expected[at(k)] += expected[at(k + 1)];
    busy[at(k)] = static_cast<double>(found[at(k)]) >=
                  expected[at(k)] + thresholds_.dotted_deviations * std::sqrt(expected[at(k)]) +
                      thresholds_.dotted_extra;
  }
  // Offsets 2, 3, ... one after the other are a band beside the diagonal: a head that looks at what
  // is near, not at several distances.
  std::int64_t band = 2;
  while (busy[at(std::min(band, length))]) ++band;
  std::vector<std::int64_t> dotted;
  for (std::int64_t k = band > 3 ? band : 2; k <= length - 2; ++k) {
    const auto cells = static_cast<double>(length - k - 1);
    if (busy[at(k)] && static_cast<double>(found[at(k)]) < thresholds_.solid * cells)
      dotted.push_back(k);
  }
  if (dotted.size() < at(thresholds_.fewest_dotted)) return;
  for (const std::int64_t k : dotted) {
    fragments_ += mass[at(k)];
    fragments_by_offset_[at(k)] += mass[at(k)];
  }
}

void RoleAccumulator::add_repeated(std::span<const float> weights, std::int64_t length,
                                   std::int64_t start, std::int64_t period) {
  require(start >= 0 && period >= 2 && length == start + 2 * period &&
              weights.size() == at(length) * at(length),
          "roles: {} weights for {} tokens: {} and twice {}", weights.size(), length, start,
          period);
  // The first token of the repetition is left out: its predecessor's successor is itself, and
  // without a start its duplicate is the sink.
  for (std::int64_t i = start + period + 1; i < length; ++i) {
    const float* row = weights.data() + i * length;
    double mass = 0.0;
    for (std::int64_t j = 0; j <= i; ++j) mass += static_cast<double>(row[j]);
    ++repeated_rows_;
    if (mass >= thresholds_.empty_row_mass) ++repeated_rows_with_mass_;
    repeated_mass_ += mass;
    repeated_even_ += mass / static_cast<double>(i + 1);
    induction_ += static_cast<double>(row[i - period + 1]);
    duplicate_ += static_cast<double>(row[i - period]);
    next_to_match_ += static_cast<double>(row[i - period - 1]) +
                      (period > 2 ? static_cast<double>(row[i - period + 2]) : 0.0);
  }
}

RoleScores RoleAccumulator::scores() const {
  RoleScores result;
  result.rows = rows_;
  result.rows_with_mass = rows_with_mass_;
  result.repeated_rows = repeated_rows_;
  result.repeated_rows_with_mass = repeated_rows_with_mass_;
  double even = 0.0;  // of a pattern with one key in every row
  for (const double share : even_) even += share;
  result[Pattern::kSink] = excess(sink_, even, mass_);
  result[Pattern::kCurrent] = excess(current_, even, mass_);
  result[Pattern::kPrevious] = excess(previous_, even, mass_);
  // Even rows have everything in common with themselves, a row with one key the least.
  result[Pattern::kDiffuse] = excess(common_, even, mass_);
  result[Pattern::kStripes] = excess(stripes_, stripes_even_, mass_);
  result[Pattern::kFragmented] = mass_ > 0.0 ? std::min(1.0, fragments_ / mass_) : 0.0;
  double rest = 0.0;  // even shares of the rows that have a key k back
  for (auto k = static_cast<std::int64_t>(offsets_.size()) - 2; k >= 2; --k) {
    rest += even_[at(k + 1)];
    const double score = excess(offsets_[at(k)], rest, mass_);
    if (score <= result[Pattern::kOffset]) continue;
    result[Pattern::kOffset] = score;
    result.offset = k;
  }
  if (result.offset > 0)
    result.offset_in_fragments = std::min(1.0, fragments_by_offset_[at(result.offset)] / mass_);
  if (rows_ > 0)
    result[Pattern::kEmpty] =
        1.0 - static_cast<double>(rows_with_mass_) / static_cast<double>(rows_);
  // A head that is silent on repeated text has no score there, whatever its dust lies on.
  if (static_cast<double>(repeated_rows_with_mass_) >
      (1.0 - thresholds_.empty_rows) * static_cast<double>(repeated_rows_)) {
    result[Pattern::kInduction] = excess(induction_, repeated_even_, repeated_mass_);
    result[Pattern::kDuplicate] = excess(duplicate_, repeated_even_, repeated_mass_);
    result[Pattern::kNextToMatch] = excess(next_to_match_, 2.0 * repeated_even_, repeated_mass_);
  }
  result.delimiters = delimiters_;
  result[Pattern::kDelimiter] = excess(delimiter_mass_, delimiter_even_, mass_);
  result.name_rows = name_rows_;
  result.name_rows_with_mass = name_rows_with_mass_;
  if (static_cast<double>(name_rows_with_mass_) >
      (1.0 - thresholds_.empty_rows) * static_cast<double>(name_rows_)) {
    result[Pattern::kNameReader] = excess(first_names_, 2.0 * name_even_, name_mass_);
    result[Pattern::kDuplicateName] = excess(second_name_, name_even_, name_mass_);
  }
  return result;
}

}  // namespace filigree
