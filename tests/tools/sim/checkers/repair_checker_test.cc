// SPDX-License-Identifier: Apache-2.0
// Does the checker see a repair that is none? Machine 0 has LSN 1 of epoch 5,
// which a client wrote; each test has something else written over it.
#include "tools/sim/checkers/repair_checker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/tools/sim/world/checked_world.h"
#include "tests/tools/sim/world/medium.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

constexpr quorum::Promise kRepairPromise{Epoch(5), {NodeId(1), 11}};
constexpr size_t kPayloadBytes = 40;
const EpochEntry kRepairEntry{Epoch(5), /*nonce=*/500, Lsn(1), RingOffset(0),
                              /*start_chain=*/0};

class RepairCheckerTest : public CheckedWorldTest {
 protected:
  RepairCheckerTest() {
    for (int machine = 0; machine < 2; ++machine) {
      Medium(world_.machine(machine)).Promise(kRepairPromise);
      checkers().epochs.Check(machine);
    }
    for (int machine = 0; machine < 2; ++machine) {
      Medium(world_.machine(machine)).Install(kRepairEntry);
      checkers().epochs.Check(machine);
    }
    History& history = world_.history();
    const PrimaryNumber primary = history.NewPrimary();
    history.Opens(primary);
    history.Opened(primary, Epoch(5), Lsn(1), Lsn(1), {});
    for (OperationId* const id : {&written_, &other_}) {
      *id = history.Begin(primary, kPayloadBytes);
      history.MayBeCompleted(*id);
    }
    history.HasLsn(written_, Lsn(1));
  }

  static std::vector<std::byte> Record(OperationId operation,
                                       uint64_t epoch = 5) {
    RecordHeader header{};
    header.lsn = 1;
    header.epoch = epoch;
    header.payload_bytes = kPayloadBytes;
    header.magic = kRecordMagic;
    header.type = static_cast<uint8_t>(RecordType::kData);
    std::vector<std::byte> bytes(RecordBytes(kPayloadBytes));
    std::memcpy(bytes.data(), &header, sizeof(header));
    FillPayload(operation,
                std::span(bytes).subspan(sizeof(header), kPayloadBytes));
    return bytes;
  }
  static RepairChecker::Bounds Bounds() {
    return {EpochTable::Empty(kLogId).With(kRepairEntry, Lsn(1)), Lsn(1),
            Lsn(1)};
  }

  absl::Status Write(RingOffset offset, std::span<const std::byte> bytes) {
    World::Model& pmem = *world_.machine(0).pmem;
    std::byte* const there =
        pmem.region().data() + world_.layout().ring_offset + offset.value;
    pmem.Copy(there, bytes.data(), bytes.size());
    pmem.Flush(there, bytes.size());
    return pmem.Fence() ? absl::OkStatus() : pmem.Error();
  }
  std::string Repair(const std::vector<std::byte>& bytes,
                     const RepairChecker::Bounds& bounds = Bounds(),
                     RingOffset offset = RingOffset(0)) {
    const absl::Status status = checkers().repairs.Watch(
        0, bounds, offset, bytes, [&](std::span<const std::byte> repaired) {
          return Write(offset, repaired);
        });
    EXPECT_TRUE(status.ok()) << status;
    return violated();
  }
  std::string what() { return world_.oracle().violation()->what; }

  OperationId written_ = 0;
  OperationId other_ = 0;  // somewhere else
};

TEST_F(RepairCheckerTest, WhatWasThereMayBeWrittenAgain) {
  EXPECT_EQ(Repair(Record(written_)), "");
  EXPECT_EQ(world_.counters().repaired_places, 1u);
  EXPECT_EQ(world_.counters().repaired_records, 1u);
}

TEST_F(RepairCheckerTest, BytesThatNobodyWroteAreSeen) {
  std::vector<std::byte> bytes = Record(written_);
  bytes[kRecordHeaderBytes + 9] ^= std::byte{1};
  EXPECT_EQ(Repair(bytes), "P-A8");
}

TEST_F(RepairCheckerTest, BytesThatAreNoRecordAreSeen) {
  EXPECT_EQ(Repair(std::vector<std::byte>(128, std::byte{7})), "P-A8");
}

TEST_F(RepairCheckerTest, ARecordOfAnEpochThatDoesNotOwnItIsSeen) {
  EXPECT_EQ(Repair(Record(written_, /*epoch=*/4)), "P-A8");
}

TEST_F(RepairCheckerTest, ARecordThatWasNotPersistedThereIsSeen) {
  RepairChecker::Bounds bounds = Bounds();
  bounds.last = Lsn(0);
  EXPECT_EQ(Repair(Record(written_), bounds), "P-A8");
}

TEST_F(RepairCheckerTest, ARecordThatTheHeadHasPassedIsSeen) {
  RepairChecker::Bounds bounds = Bounds();
  bounds.head = Lsn(2);
  EXPECT_EQ(Repair(Record(written_), bounds), "P-A8");
}

TEST_F(RepairCheckerTest, WhatIsNotOnTheMediumIsSeen) {
  const std::vector<std::byte> bytes = Record(written_);
  const absl::Status status = checkers().repairs.Watch(
      0, Bounds(), RingOffset(0), bytes,
      [](std::span<const std::byte>) { return absl::OkStatus(); });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(violated(), "P-A8");
}

TEST_F(RepairCheckerTest, AMediumThatFailsHasNothingToBeJudged) {
  const absl::Status status =
      checkers().repairs.Watch(0, Bounds(), RingOffset(0), Record(written_),
                               [](std::span<const std::byte>) {
                                 return absl::UnavailableError("failed");
                               });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(violated(), "");
}

TEST_F(RepairCheckerTest, ARepairBesideAnOpeningIsSeen) {
  RepairChecker::Bounds bounds = Bounds();
  bounds.is_at_work = true;
  EXPECT_EQ(Repair(Record(written_), bounds), "P-A8");
}

TEST_F(RepairCheckerTest, AScrubOfAReplicaThatIsRepairedIsSeen) {
  Medium medium(world_.machine(0));
  medium.Promise({Epoch(6), {NodeId(1), 11}});
  checkers().epochs.Check(0);
  medium.Change([](Superline& superline) { superline.repairing = true; });
  checkers().epochs.Check(0);
  EXPECT_EQ(Repair(Record(written_)), "P-A8");
}

TEST_F(RepairCheckerTest, ADurableRecordThatIsOverwrittenIsSeen) {
  Medium medium(world_.machine(0));
  medium.WriteFirstRecord(kRepairEntry, std::byte{1});
  const RecordView record = medium.FirstRecord();
  checkers().durability.Learn(record, medium.BytesOf(record), Epoch(5));
  EXPECT_EQ(Repair(Record(written_)), "P-A8");
  EXPECT_NE(what().find("durable"), std::string::npos) << what();
}

TEST_F(RepairCheckerTest, ARecordThatIsNotCleanedAnyMoreIsSeen) {
  Medium(world_.machine(0)).WriteFirstRecord(kRepairEntry, std::byte{1});
  const RepairChecker::Bounds bounds = Bounds();
  const EpochEntry* const owner = bounds.table.Owner(Lsn(1));
  const uint64_t word =
      CleanedWord(bounds.table.KeyOf(owner).Seed(Lsn(1), RingOffset(0)));
  const RingOffset place(offsetof(RecordHeader, cleaned));
  ASSERT_TRUE(Write(place, std::as_bytes(std::span(&word, 1))).ok());
  EXPECT_EQ(Repair(std::vector<std::byte>(sizeof(word)), bounds, place),
            "P-A8");
  EXPECT_NE(what().find("cleaned"), std::string::npos) << what();
}

}  // namespace
}  // namespace alpheus::sim
