// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/completion_tracker.h"

#include <gtest/gtest.h>

namespace alpheus {
namespace {

using State = CompletionTracker::State;

TEST(CompletionTrackerTest, SizeIsAPowerOfTwo) {
  EXPECT_EQ(CompletionTracker(5).size(), 8u);
  EXPECT_EQ(CompletionTracker(8).size(), 8u);
}

TEST(CompletionTrackerTest, RecordGoesFromOpenToPersisted) {
  CompletionTracker tracker(4);
  tracker.NoteReserved(Lsn(1), {RingOffset(64), RingOffset(192)}, 9);
  EXPECT_EQ(tracker.StateOf(Lsn(1)), State::kOpen);
  tracker.MarkCompleted(Lsn(1), 7);
  EXPECT_EQ(tracker.HeaderCrcOf(Lsn(1)), 7u);
  EXPECT_EQ(tracker.StateOf(Lsn(1)), State::kCompleted);
  EXPECT_EQ(tracker.ExtentOf(Lsn(1)).begin, RingOffset(64));
  EXPECT_EQ(tracker.ExtentOf(Lsn(1)).end, RingOffset(192));
  tracker.MarkPersisted(Lsn(1));
  EXPECT_EQ(tracker.StateOf(Lsn(1)), State::kPersisted);
}

// The next user of a slot starts open, whatever its last one was.
TEST(CompletionTrackerTest, SlotOfTheLastLapSaysNothingOfThisOne) {
  CompletionTracker tracker(4);
  tracker.MarkPersisted(Lsn(2));
  EXPECT_EQ(tracker.StateOf(Lsn(6)), State::kOpen);
  tracker.MarkCompleted(Lsn(6), 0);
  EXPECT_EQ(tracker.StateOf(Lsn(2)), State::kOpen);
}

TEST(CompletionTrackerTest, OwnershipEndsWithHandingOverAndWithTheLap) {
  CompletionTracker tracker(4);
  tracker.NoteReserved(Lsn(1), {}, 9);
  EXPECT_TRUE(tracker.IsOwnedBy(Lsn(1), 9));
  EXPECT_FALSE(tracker.IsOwnedBy(Lsn(1), 8));
  EXPECT_FALSE(tracker.IsOwnedBy(Lsn(5), 9));
  tracker.Disown(Lsn(1));
  EXPECT_FALSE(tracker.IsOwnedBy(Lsn(1), 9));
}

}  // namespace
}  // namespace alpheus
