// Every number that decides a head's role. docs/analysis.md says what each does.
#pragma once

namespace filigree {

struct RoleThresholds {
  // Rows with less mass than this are empty; a head whose share of such rows is at least
  // `empty_rows` is empty.
  double empty_row_mass = 0.05;
  double empty_rows = 0.95;

  // A cell is strong when it has this share of its row's mass, and this many times an even share.
  double strong_share = 0.05;
  double strong_over_even = 2.0;

  // A key is a stripe when it is strong in this share of the rows after it, and there are so many.
  double stripe_rows = 0.5;
  int stripe_fewest_rows = 4;

  // A diagonal is dotted when it has more strong cells than chance by this many standard deviations
  // and `dotted_extra`, but is filled less than `solid`; fragmented means several dotted ones.
  double dotted_deviations = 4.0;
  double dotted_extra = 2.0;
  double solid = 0.5;
  int fewest_dotted = 2;

  // A pattern is a head's role from `role` on; two are a hybrid when each has `hybrid_part` and
  // they have `hybrid_total` together.
  double role = 0.4;
  double hybrid_part = 0.25;
  double hybrid_total = 0.6;
  // On repeated text, for induction, duplicate and next-to-match.
  double repeated = 0.3;
  // On sentences with names, for the roles of names.
  double names = 0.5;
  // A head raises (lowers) a name that it reads when the name is among this share of the vocabulary
  // that it raises (lowers) most.
  double copied_share = 0.01;
  // So many delimiters must have been there to be looked at.
  int fewest_delimiters = 3;

  // Fewer rows with attention give no role: one edge is no pattern. The confidence is multiplied by
  // rows / (rows + confidence_rows).
  int fewest_rows = 4;
  double confidence_rows = 4.0;
};

inline constexpr RoleThresholds kRoleThresholds = {};

}  // namespace filigree
