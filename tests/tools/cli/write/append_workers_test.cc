// SPDX-License-Identifier: Apache-2.0
// The words of a failed append about its input.
#include "tools/cli/write/append_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Goal: a user who feeds the rest of an input doubles no record.
TEST(AppendWorkersTest, RecordsWhoseOutcomeIsUnknownAreNotCountedAsMissing) {
  EXPECT_EQ(cli::WhatIsInTheLog("`alpheus cat`", Lsn(5), Lsn(7), Lsn(8)),
            "3 records of this input are in the log; `alpheus cat` shows them");
  EXPECT_THAT(
      cli::WhatIsInTheLog("`alpheus cat`", Lsn(5), Lsn(7), Lsn(9)),
      AllOf(HasSubstr("At least 3 records of this input are in the "
                      "log, up to LSN 7; more may be"),
            HasSubstr(
                "`alpheus cat` shows which, after the log was opened again")));
  // Nothing came, and the log had more before.
  EXPECT_THAT(cli::WhatIsInTheLog("", Lsn(5), Lsn(2), Lsn(5)),
              HasSubstr("0 records"));
  EXPECT_THAT(cli::WhatIsInTheLog("", Lsn(5), Lsn(4), Lsn(6)),
              HasSubstr("At least 0 records"));
}

}  // namespace
}  // namespace alpheus::testing
