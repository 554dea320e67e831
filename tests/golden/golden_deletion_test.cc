// SPDX-License-Identifier: Apache-2.0
// Golden regions of format version 4: a replica that is marked as deleted, and
// what is left of one whose records are removed. Both must be read for ever,
// and never be opened for writing.
//
// The marked one is of node 1 of three. It holds two epochs, a record behind a
// PAD, an empty one, and a list of members that was made from another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/region_use.h"
#include "log/format/superline.h"
#include "recovery/protocol/deletion.h"
#include "recovery/replica/local_replica.h"
#include "tests/golden/golden_region.h"
#include "tests/recovery/replica/replica_world.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {
namespace {

using model::ModelPersistence;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Configuration GoldenList() {
  MemberList first;
  first.replica_count = 3;
  first.write_quorum = 2;
  first.members = {{NodeId(1), 101}, {NodeId(2), 102}, {NodeId(3), 103}};
  Configuration second;
  static_cast<MemberList&>(second) = first;
  second.id = 2;
  second.members[2] = {NodeId(4), 104};
  second.made_from = first;
  return second;
}

LogImage GoldenLog() {
  LogImage log(1152);
  log.OpenEpoch(Epoch(5));
  log.Append(std::string(200, 's'));
  log.Append(std::string(528, 'L'));  // the largest
  log.CleanThrough(Lsn(1));
  log.Append("");
  log.OpenEpoch(Epoch(6));
  log.Append(std::string(100, 'w'));
  log.Append("this wraps behind a PAD");
  log.OpenEpoch(Epoch(7));
  return log;
}

// A replica on which an epoch was installed, with the mark.
std::unique_ptr<ReplicaWorld> MarkedReplica() {
  auto world = std::make_unique<ReplicaWorld>(
      ReplicaWorldOptions{.ring_capacity = 1152});
  EXPECT_TRUE(world->Open().ok());
  const LogImage log = GoldenLog();
  recovery::Installation installation = log.ToInstall();
  installation.configuration = GoldenList();
  EXPECT_TRUE(world->AcceptPromise(installation.epoch).ok());
  world->CopyAll(log);
  const absl::Status installed = world->replica().Install(installation);
  EXPECT_TRUE(installed.ok()) << installed;
  EXPECT_TRUE(world->AcceptPromise(Epoch(9)).ok());  // that of the deletion
  EXPECT_TRUE(world->replica().MarkDeleted(Deletion::kMarked).ok());
  return world;
}

std::vector<std::byte> MakeMarked() {
  return MarkedReplica()->pmem().CutKeepingNone();
}

std::vector<std::byte> MakeRemoved() {
  const auto world = MarkedReplica();
  ModelPersistence left(LayoutOfRemoved().region_bytes);
  EXPECT_TRUE(
      FormatRemoved(left, left.region(), world->replica().superline()).ok());
  return left.CutKeepingNone();
}

class GoldenDeletionTest : public ::testing::Test {
 protected:
  // Reads the region, which must be whole, and returns its superline.
  static Superline SuperlineOf(const std::string& path) {
    const auto reader = LogReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return {};
    EXPECT_EQ((*reader)->info().format_version, kDeletionFormatVersion);
    EXPECT_TRUE((*reader)->Verify().status.ok());
    ModelPersistence found(ReadFile(path));
    const auto state = ReadRegionState(found.region(), path);
    EXPECT_TRUE(state.ok()) << state.status();
    if (!state.ok()) return {};
    EXPECT_THAT(state->single_faults, IsEmpty());
    return state->superline;
  }

  // Both regions keep these.
  static void ExpectIdentity(const Superline& superline) {
    EXPECT_EQ(superline.cluster_id, kWorldCluster);
    EXPECT_EQ(superline.log_id, kWorldLog);
    EXPECT_EQ(superline.node, NodeId(1));
    EXPECT_EQ(superline.incarnation, 101U);
    EXPECT_EQ(superline.configuration, GoldenList());
    EXPECT_EQ(superline.promised_epoch, Epoch(9));
  }

  // P-D2: whoever would write it is told that the log is deleted, and changes
  // no byte.
  static void ExpectNoWriter(const std::string& path, Deletion deletion) {
    const std::vector<std::byte> golden = ReadFile(path);
    ModelPersistence found(golden);
    const auto replica = recovery::LocalReplica<ModelPersistence>::Open(
        found, found.region(), {.name = "golden"});
    ASSERT_TRUE(replica.ok()) << replica.status();
    const std::vector<std::function<absl::Status()>> calls = {
        [&] {
          return (*replica)
              ->AcceptPromise(ReplicaWorld::PromiseFor(Epoch(99)))
              .status();
        },
        [&] { return (*replica)->BeginRepair(Epoch(9)); },
        [&] { return (*replica)->RaiseCeiling(Epoch(9), RingOffset(1152)); },
        [&] { return (*replica)->StartInstall(GoldenLog().ToInstall()); },
    };
    for (const auto& call : calls) ExpectDeleted(call(), deletion);
    EXPECT_TRUE(std::ranges::equal(found.region(), golden));

    const TempDirectory directory;
    const std::string copy = directory.File("golden");
    WriteFile(copy, golden);
    ExpectDeleted(Log::Open({.path = copy}).status(), deletion);
    EXPECT_TRUE(absl::IsAlreadyExists(
        Log::Format({.path = copy, .region_bytes = 1 << 20}).status()));
    EXPECT_TRUE(ReadFile(copy) == golden);
    EXPECT_EQ(UseOfRegion(found.region(), /*is_device=*/false),
              RegionUse::kUsed);
  }
  static void ExpectDeleted(const absl::Status& refused, Deletion deletion) {
    EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
    EXPECT_EQ(recovery::DeletionBy(refused), deletion) << refused;
  }

  const std::string marked_ = GoldenPath("4");
  const std::string removed_ = GoldenPath("4_removed");
};

// One replica of three does not prove that a record is durable.
TEST_F(GoldenDeletionTest, MarkedOneReadsAsWritten) {
  EXPECT_THAT(
      ReadGoldenRecords(marked_),
      ElementsAre("2 5 completed " + std::string(528, 'L'), "3 5 completed ",
                  "4 6 completed " + std::string(100, 'w'),
                  "5 6 completed this wraps behind a PAD"));
  const Superline superline = SuperlineOf(marked_);
  ExpectIdentity(superline);
  EXPECT_EQ(superline.deletion, Deletion::kMarked);
  EXPECT_EQ(superline.log_epoch, Epoch(7));
}

// P-D4: name, list, promise and mark are left, and no record.
TEST_F(GoldenDeletionTest, RemovedOneReadsAsWritten) {
  EXPECT_THAT(ReadGoldenRecords(removed_), IsEmpty());
  const Superline superline = SuperlineOf(removed_);
  ExpectIdentity(superline);
  EXPECT_EQ(superline.deletion, Deletion::kDecided);
  EXPECT_EQ(superline.log_epoch, Epoch(0));
  EXPECT_EQ(superline.head_lsn, Lsn(1));
  EXPECT_EQ(superline.region_bytes, LayoutOfRemoved().region_bytes);
}

TEST_F(GoldenDeletionTest, MarkedOneIsWrittenByNobody) {
  ExpectNoWriter(marked_, Deletion::kMarked);
}

TEST_F(GoldenDeletionTest, RemovedOneIsWrittenByNobody) {
  ExpectNoWriter(removed_, Deletion::kDecided);
}

// A change of a single byte is a change of format, as in golden_test.cc.
TEST_F(GoldenDeletionTest, SameCallsWriteTheSameBytes) {
  ExpectGoldenBytes(marked_, MakeMarked());
  ExpectGoldenBytes(removed_, MakeRemoved());
}

}  // namespace
}  // namespace alpheus::testing
