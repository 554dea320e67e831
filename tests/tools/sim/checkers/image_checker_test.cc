// SPDX-License-Identifier: Apache-2.0
// Does the checker of durable records see each way in which one is not on W
// media? A primary of epoch 5 counts a record that was put there by hand.
#include "tools/sim/checkers/image_checker.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "log/core/write/record_writer.h"
#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

constexpr Epoch kEpoch(5);
constexpr uint64_t kNonce = 7;
constexpr size_t kWrittenBytes = 40;

class ImageCheckerTest : public CheckedWorldTest {
 protected:
  ImageCheckerTest() {
    start_.table = EpochTable::Empty(kLogId).With(
        {kEpoch, kNonce, Lsn(1), RingOffset(0), /*start_chain=*/0}, Lsn(1));
    start_.superline.log_epoch = Epoch(0);  // as the media have it
    start_.end.lsn = Lsn(1);
  }

  std::span<std::byte> OwnRing() {
    return cache_.region().subspan(world_.layout().ring_offset,
                                   world_.layout().ring_capacity);
  }
  Ring ring() { return {OwnRing().data(), OwnRing().size()}; }

  // LSN 1, in the primary's own ring.
  void Write() {
    const std::array<std::byte, kWrittenBytes> bytes = {};
    const std::array<std::span<const std::byte>, 1> parts = {bytes};
    Payload payload(parts);
    payload.ComputeCrc();
    RecordWriter<World::Model> writer(cache_, ring(),
                                      EpochKey(kLogId, kEpoch, kNonce), kEpoch);
    writer.WriteCached({.lsn = Lsn(1),
                        .begin = RingOffset(0),
                        .offset = RingOffset(0),
                        .end = RingOffset(RecordBytes(kWrittenBytes))},
                       payload, Lsn(0));
  }
  // The same on the media of so many machines.
  void PutOnMedia(int machines) {
    for (int i = 0; i < machines; ++i) {
      World::Model& pmem = *world_.machine(i).pmem;
      std::byte* const there =
          pmem.region().data() + world_.layout().ring_offset;
      pmem.Copy(there, OwnRing().data(), RecordBytes(kWrittenBytes));
      pmem.Flush(there, RecordBytes(kWrittenBytes));
      ASSERT_TRUE(pmem.Fence());
    }
  }
  std::string Judge() {
    ImageChecker(world_, ring(), start_).OnDurable(Lsn(1));
    return violated();
  }

  World::Model cache_{world_.layout().region_bytes};
  RingLogStart start_;
};

TEST_F(ImageCheckerTest, ARecordOnWMediaIsDurable) {
  Write();
  PutOnMedia(2);
  EXPECT_EQ(Judge(), "");
  EXPECT_EQ(world_.counters().records_checked, 1u);
}

TEST_F(ImageCheckerTest, OneMediumShortIsSeen) {
  Write();
  PutOnMedia(1);
  EXPECT_EQ(Judge(), "P-INV-22");
}

TEST_F(ImageCheckerTest, MediaThatHaveNotInstalledTheEpochDoNotCount) {
  Write();
  PutOnMedia(3);
  start_.superline.log_epoch = kEpoch;
  EXPECT_EQ(Judge(), "P-INV-22");
}

TEST_F(ImageCheckerTest, APayloadThatDoesNotHoldIsSeen) {
  Write();
  OwnRing()[kRecordHeaderBytes] ^= std::byte{1};
  PutOnMedia(3);
  EXPECT_EQ(Judge(), "P-INV-22");
}

// RSK4.
TEST_F(ImageCheckerTest, ARecordIsOnAsManyMediaAsAreInSync) {
  Write();
  PutOnMedia(2);
  ImageChecker checker(world_, ring(), start_);
  checker.OnInSync(Lsn(1), Lsn(1), 2);
  EXPECT_EQ(violated(), "");
}

TEST_F(ImageCheckerTest, ARecordBeforeTheHeadNeedNotBeThere) {
  Write();
  ImageChecker checker(world_, ring(), start_);
  checker.OnInSync(Lsn(2), Lsn(1), 3);
  EXPECT_EQ(violated(), "");
}

TEST_F(ImageCheckerTest, OneInSyncThatLacksARecordIsSeen) {
  Write();
  PutOnMedia(2);
  ImageChecker checker(world_, ring(), start_);
  checker.OnInSync(Lsn(1), Lsn(1), 3);
  EXPECT_EQ(violated(), "RSK4");
}

TEST_F(ImageCheckerTest, ARecordThatIsNotThereIsSeen) {
  EXPECT_EQ(Judge(), "P-INV-22");
}

}  // namespace
}  // namespace alpheus::sim
