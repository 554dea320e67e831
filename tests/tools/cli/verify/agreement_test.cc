// SPDX-License-Identifier: Apache-2.0
// The sentence on what the nodes of a log have in common.
#include "tools/cli/verify/agreement.h"

#include <gtest/gtest.h>

namespace alpheus::testing {
namespace {

TEST(AgreementTest, NobodyAndOneAloneAgreeWithNobody) {
  cli::Agreement agreement;
  agreement.durable_lsn = Lsn(7);
  agreement.write_quorum = 2;
  EXPECT_EQ(agreement.ToString(),
            "durable up to LSN 7: no node that could be read has all of these "
            "records (W is 2)\n");
  agreement.records = 7;
  agreement.nodes = {3};
  EXPECT_EQ(agreement.ToString(),
            "durable up to LSN 7: 7 records, not compared: only node 3 has "
            "them all (W is 2)\n");
  agreement.nodes = {1, 3};
  EXPECT_EQ(agreement.ToString(),
            "durable up to LSN 7: 7 records, the same on nodes 1, 3 (W is "
            "2)\n");
}

}  // namespace
}  // namespace alpheus::testing
