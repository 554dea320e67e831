// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/work_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replication/persist/platform/method_steps.h"

namespace alpheus::bench::remotelog {
namespace {

using ::testing::ElementsAre;

double BlocksOf(const replication::Step& step, const Costs& costs = {}) {
  return (PostCost(step, costs) - costs.post) / costs.post_block;
}

// Goal: the layout, by hand: 16 bytes control, 16 address, 4 + payload rounded
// up to 16, or 16 for a pointer.
TEST(WorkRequestTest, PostTakesAsManyBlocksAsItsBytesFill) {
  EXPECT_EQ(BlocksOf(replication::steps::kWriteA), 2);           // 16 + 16 + 80
  EXPECT_EQ(BlocksOf(replication::steps::kWriteImmediateA), 2);  // the same
  EXPECT_EQ(BlocksOf(replication::steps::kSendBoth), 2);         // 16 + 80
  EXPECT_EQ(BlocksOf(replication::steps::kWriteB), 1);           // 16 + 16 + 16
  EXPECT_EQ(BlocksOf(replication::steps::kWriteAtomicB), 1);
  EXPECT_EQ(BlocksOf(replication::steps::kFlush), 1);         // 16 + 16 + 16
  EXPECT_EQ(BlocksOf(replication::steps::kSendAddressA), 1);  // 16 + 32
  EXPECT_EQ(BlocksOf(replication::steps::kSendAck), 1);
}

TEST(WorkRequestTest, BytesThatAreNotInlineTakeAPointer) {
  const Costs costs{.inline_bytes = kNoticeBytes};
  EXPECT_FALSE(IsInline(replication::steps::kWriteA, costs));
  EXPECT_EQ(BlocksOf(replication::steps::kWriteA, costs), 1);  // 16 + 16 + 16
  EXPECT_TRUE(IsInline(replication::steps::kSendAck, costs));
}

TEST(WorkRequestTest, PacketTakesTheLinkByItsBytes) {
  const Costs costs{.gigabits = 8, .header_bytes = 40};
  EXPECT_EQ(LinkTime(60, costs), 100);  // a byte in a nanosecond
}

TEST(WorkRequestTest, LastOperationBeforeAWaitIsAwaited) {
  EXPECT_THAT(AwaitedSteps(replication::steps::kWriteThenAtomicThenFlush),
              ElementsAre(false, false, false, true, false));
  EXPECT_THAT(AwaitedSteps(replication::steps::kWriteImmediatesThenFlushes),
              ElementsAre(false, true, false, false, true, false));
  EXPECT_THAT(AwaitedSteps(replication::steps::kWritesCompleted),
              ElementsAre(false, true, false));
  // An ack is no completion.
  EXPECT_THAT(AwaitedSteps(replication::steps::kSendThenAck),
              ElementsAre(false, false, false, false, false));
}

}  // namespace
}  // namespace alpheus::bench::remotelog
