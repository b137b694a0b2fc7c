#include "base/csv.h"

#include <gtest/gtest.h>

#include <cmath>

namespace filigree {
namespace {

TEST(Csv, FieldsAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a, \"b\""), "\"a, \"\"b\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, NoTextIsAFormulaAndNumbersStayNumbers) {
  for (const char* text : {"=1+1", "+cmd", "-cmd|'/C calc'!A0", "@SUM(A1)", "\t=1", " =1", "-"})
    EXPECT_EQ(csv_field(text), "'" + std::string(text)) << text;
  EXPECT_EQ(csv_field("=A1,B1"), "\"'=A1,B1\"");
  EXPECT_EQ(csv_field("-inf"), "'-inf");
  for (const char* number : {"-0.5", "+3", "-1e-7", "12"}) EXPECT_EQ(csv_field(number), number);
}

TEST(Csv, WhatIsNotFiniteIsAnEmptyField) {
  EXPECT_EQ(csv_number(-0.25), "-0.25");
  EXPECT_EQ(csv_number(NAN), "");
  EXPECT_EQ(csv_number(-INFINITY), "");
}

}  // namespace
}  // namespace filigree
