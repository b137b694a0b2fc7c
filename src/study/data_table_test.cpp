#include "study/data_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

TEST(DataTable, QuotesWhatCsvWouldMisread) {
  const DataTable table = {"", {"part", "score"}, {{"L1H0 ',' <- \"a\"", "-0.5"}, {"plain", ""}}};
  EXPECT_EQ(csv_of(table), "part,score\n\"L1H0 ',' <- \"\"a\"\"\",-0.5\nplain,\n");
}

TEST(DataTable, EscapesWhatLatexWouldRead) {
  const DataTable table = {
      "100 % of #1", {"a_b", "n"}, {{"x & y\\z", "1,200"}, {"{~^<>}", "-3"}, {"", ""}}};
  EXPECT_EQ(latex_of(table),
            "% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n"
            "  \\caption{100 \\% of \\#1}\n"
            "  \\begin{tabular}{lr}\n    \\toprule\n    a\\_b & n \\\\\n    \\midrule\n"
            "    x \\& y\\textbackslash{}z & 1,200 \\\\\n"
            "    \\{\\textasciitilde{}\\textasciicircum{}\\textless{}\\textgreater{}\\} & -3 \\\\\n"
            "     &  \\\\\n"
            "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}

TEST(DataTable, RefusesRowsThatDoNotFit) {
  const DataTable table = {"sizes", {"a", "b"}, {{"1"}}};
  EXPECT_THAT(error_of([&] { csv_of(table); }), HasSubstr("'sizes'"));
  EXPECT_THAT(error_of([&] { latex_of(table); }), HasSubstr("1 fields under 2"));
}

}  // namespace
}  // namespace filigree::study
