// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace alpheus::cli {
namespace {

TEST(HelpTextTest, LongLinesGoOnBelowTheirText) {
  EXPECT_EQ(
      WrapHelp("  --size TEXT      How large it is to be, in bytes\n", 40),
      "  --size TEXT      How large it is to\n"
      "                   be, in bytes\n");
  EXPECT_EQ(WrapHelp("  a paragraph that has an indent of two\n", 20),
            "  a paragraph that\n"
            "  has an indent of\n"
            "  two\n");
}

TEST(HelpTextTest, WhatFitsStaysAsItIs) {
  const std::string text = "Usage: a [OPTIONS]\n\n  -h,--help    Help\n\n";
  EXPECT_EQ(WrapHelp(text, 40), text);
  EXPECT_EQ(WrapHelp("", 40), "");
  EXPECT_EQ(WrapHelp("no end of line", 40), "no end of line");
}

TEST(HelpTextTest, WordThatIsTooLongStaysWhole) {
  EXPECT_EQ(WrapHelp("see https://example.com/a/very/long/way now", 20),
            "see\nhttps://example.com/a/very/long/way\nnow");
}

// A line whose text begins too far right goes on below its own beginning.
TEST(HelpTextTest, LongOptionLeavesRoomForItsText) {
  const std::string wrapped = WrapHelp(
      "  --an-option-with-a-long-name TEXT:{a,b,c}  What it is good for, at "
      "length",
      60);
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(wrapped, '\n'))) {
    EXPECT_LE(line.size(), 60u) << line;
  }
}

// A name that fills its room leaves one space before the text.
TEST(HelpTextTest, TextBehindANameThatFillsItsRoomHasTheSameColumn) {
  EXPECT_EQ(
      WrapHelp("  --domain TEXT:{dmp,mhp,wsp} What keeps its content when "
               "the power goes\n",
               60),
      "  --domain TEXT:{dmp,mhp,wsp} What keeps its content when\n"
      "                              the power goes\n");
  // A sentence with a space there is none.
  EXPECT_EQ(WrapHelp("a sentence, of which a word is that begins there", 40),
            "a sentence, of which a word is that\nbegins there");
}

TEST(HelpTextTest, LongListGoesOnBehindACommaOfIt) {
  EXPECT_EQ(WrapHelp("  --faults TEXT:{none,kill-primary,power-cut} ...\n", 40),
            "  --faults\n"
            "  TEXT:{none,kill-primary,power-cut} ...\n");
  EXPECT_EQ(
      WrapHelp("  --faults TEXT:{none,kill-primary,power-cut,pause} ...", 30),
      "  --faults TEXT:{none,\n"
      "  kill-primary,power-cut,\n"
      "  pause} ...");
}

TEST(HelpTextTest, NoTerminalIsEightyColumnsOrWhatIsSaid) {
  EXPECT_GE(TerminalColumns(-1), 40u);
}

}  // namespace
}  // namespace alpheus::cli
