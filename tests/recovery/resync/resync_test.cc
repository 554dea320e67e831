// SPDX-License-Identifier: Apache-2.0
// Members that were away come back while the log runs: node 3 of three, to a
// primary on node 1.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/region_state.h"
#include "recovery/scrub/scrubbing.h"
#include "tests/recovery/opening/opening_world.h"
#include "tests/recovery/opening/own_log.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Primary = OpeningWorld::Primary;

constexpr int kJoiner = 3;
constexpr uint64_t kRingBytes = 2048;

constexpr uint64_t kRecordBytes = 128;  // of Append, unless it is told more

OpeningWorld::Options ResyncWorldOptions(
    uint64_t read_whole_bytes_max = kReadWholeBytesMax) {
  OpeningWorld::Options options;
  options.ring_capacity = kRingBytes;
  options.real_server = true;
  options.resyncs = true;
  options.read_whole_bytes_max = read_whole_bytes_max;
  return options;
}

class ResyncTest : public ::testing::Test {
 protected:
  void StartAgain(uint64_t read_whole_bytes_max = kReadWholeBytesMax) {
    primary_.reset();
    world_ = std::make_unique<OpeningWorld>(
        ResyncWorldOptions(read_whole_bytes_max));
    live_.clear();
  }
  // Opens a log on node 1, and starts it.
  void OpenLog() {
    recovery::EpochOpeningOptions options = world_->OpeningOptions(0);
    options.batch_bytes_max = 256;
    for (;;) {
      primary_ = world_->Open(0, options);
      if (!primary_->opening->lost_race()) break;
      options.above = primary_->opening->refused_by()->epoch;
    }
    ASSERT_TRUE(primary_->status().ok()) << primary_->status();
    world_->StartLog(*primary_);
  }
  void CloseLog() {
    primary_.reset();
    world_->Crash(1, /*power_cut=*/false);
    world_->Restart(1);
  }
  // Durable when it returns.
  void Append(int records, size_t bytes = 20) {
    for (int i = 0; i < records; ++i) {
      std::string text = std::to_string(++appended_);
      text.resize(bytes, '.');
      const std::span<const std::byte> part = AsBytes(text);
      const absl::StatusOr<Lsn> lsn = primary_->log->Append({&part, 1}, 1, {});
      ASSERT_TRUE(lsn.ok()) << lsn.status();
      live_.push_back(text);
    }
  }
  void Clean(int records) {
    const Lsn head = primary_->log->head().lsn;
    ASSERT_TRUE(
        primary_->log->CleanupThrough(head + static_cast<uint64_t>(records) - 1)
            .ok());
    live_.erase(live_.begin(), live_.begin() + records);
  }
  void StepOnce() {
    world_->StepOthers(0);
    primary_->log->Poll();
  }
  bool StepUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 30'000; ++i) {
      if (done()) return true;
      StepOnce();
    }
    return false;
  }
  // Has the primary scrub its own replica, but only when it is asked to.
  void ClaimReplica() {
    own_log_ = std::make_unique<OwnLog>(*primary_);
    recovery::ScrubbingOptions scrubbing;
    scrubbing.bytes_per_second = 0;
    scrubbing.peers = primary_->asked.peers;
    primary_->upkeep->ClaimReplica(ClaimHeardByNobody(*primary_), scrubbing,
                                   *own_log_);
  }
  LogPosition PositionOf(Lsn lsn) {
    const RingLog<OpeningWorld::Model>& log = *primary_->log;
    RecordCursor cursor(log.ring(), log.table(), log.head(), log.tail());
    while (cursor.position().lsn < lsn &&
           cursor.Next() == RecordCursor::Step::kRecord) {
    }
    return cursor.position();
  }
  uint32_t in_sync() { return primary_->upkeep->replicator().in_sync(); }
  const recovery::ReplicaResync::Counters& counters() {
    return primary_->upkeep->resync().counters();
  }
  // Crashes the joiner, and runs until the primary has given it up.
  void GoAway(bool power_cut) {
    world_->Crash(kJoiner, power_cut);
    Append(1);
    ASSERT_TRUE(StepUntil([&] { return in_sync() == 2; }));
  }
  void ComeBack(bool suspect = false) {
    world_->Restart(kJoiner, suspect);
    ASSERT_TRUE(StepUntil([&] { return in_sync() == 3; })) << Why();
  }
  std::string Why() {
    std::string text;
    for (const recovery::OtherMember& m :
         primary_->upkeep->resync().OutOfSync()) {
      text += m.why + "; ";
    }
    return text;
  }
  // Node 3 has all there is, and it is persistent there.
  void ExpectJoined() {
    Append(1);
    ASSERT_TRUE(
        StepUntil([&] { return primary_->sink->replication_state().is_idle; }));
    EXPECT_THAT(world_->Payloads(kJoiner), ElementsAreArray(live_));
    const Superline& superline = world_->replica(kJoiner).superline();
    EXPECT_EQ(superline.log_epoch, primary_->opened->epoch);
    EXPECT_FALSE(superline.repairing);
  }
  // An opening without node 1 shows all that was acknowledged.
  void ExpectAllIsThereWithoutNode1() {
    primary_.reset();
    world_->Crash(1);
    if (!world_->IsUp(2)) world_->Restart(2);
    const std::unique_ptr<Primary> next = world_->Open(4);
    ASSERT_TRUE(next->status().ok()) << next->status();
    std::vector<std::byte> image = next->cache_pmem->CutKeepingAll();
    const std::vector<std::string> shown = LivePayloads(image);
    ASSERT_GE(shown.size(), live_.size());
    EXPECT_TRUE(std::equal(live_.begin(), live_.end(), shown.begin()));
  }

  std::unique_ptr<OpeningWorld> world_ =
      std::make_unique<OpeningWorld>(ResyncWorldOptions());
  std::unique_ptr<OwnLog> own_log_;
  std::unique_ptr<Primary> primary_;
  int appended_ = 0;
  std::vector<std::string> live_;  // acknowledged, not cleaned
};

TEST_F(ResyncTest, MemberOfThisEpochJoinsWithWhatItMissed) {
  for (const bool power_cut : {false, true}) {
    SCOPED_TRACE(power_cut);
    if (primary_ == nullptr) OpenLog();
    Append(2);
    GoAway(power_cut);
    Append(4);
    const uint64_t joins = counters().joins;
    ComeBack();
    EXPECT_EQ(counters().joins, joins + 1);
    ExpectJoined();
  }
}

// It counts: without it there are no W.
TEST_F(ResyncTest, MemberThatJoinedMakesAQuorum) {
  OpenLog();
  GoAway(/*power_cut=*/true);
  Append(5);
  ComeBack();
  world_->Crash(2);
  Append(3);
  EXPECT_EQ(primary_->upkeep->replicator().in_sync(), 2u);
  ExpectAllIsThereWithoutNode1();
}

// Records of earlier epochs that it missed are copied, and this epoch's come
// behind.
TEST_F(ResyncTest, MemberOfAnEarlierEpochJoins) {
  OpenLog();
  Append(3);
  GoAway(/*power_cut=*/true);
  Append(3);
  CloseLog();
  OpenLog();
  EXPECT_EQ(in_sync(), 2u);
  // Known from the start, not only once it could not join.
  const recovery::MemberUpkeep::State state = primary_->upkeep->state();
  ASSERT_EQ(state.out_of_sync.size(), 1u);
  EXPECT_EQ(state.out_of_sync[0].node, NodeId(kJoiner));
  EXPECT_THAT(state.out_of_sync[0].why,
              HasSubstr("took no part in the opening: came too late"));
  Append(3);
  ComeBack();
  EXPECT_EQ(counters().records_copied, 4u);
  ExpectJoined();
}

// Its own records of an earlier epoch lie where others were chosen.
TEST_F(ResyncTest, MemberWithOtherRecordsJoins) {
  std::unique_ptr<Primary> lost = world_->Open(0);
  ASSERT_TRUE(lost->status().ok());
  for (const char* text : {"x", "y", "z"})
    world_->Append(*lost, text, {kJoiner});
  world_->Crash(kJoiner);
  lost.reset();
  for (int epoch = 0; epoch < 2; ++epoch) {
    OpenLog();
    Append(4);
    if (epoch == 0) CloseLog();
  }
  ComeBack();
  EXPECT_EQ(counters().records_copied, 4u);
  ExpectJoined();
}

// The head has moved by more than a lap meanwhile.
TEST_F(ResyncTest, MemberThatIsALapBehindJoins) {
  for (const bool reopen : {false, true}) {
    SCOPED_TRACE(reopen);
    if (primary_ == nullptr) OpenLog();
    if (!live_.empty()) Clean(static_cast<int>(live_.size()) - 1);
    Append(4);
    GoAway(/*power_cut=*/true);
    for (int i = 0; i < 30; ++i) {
      Append(2, 100);
      if (live_.size() > 6) Clean(static_cast<int>(live_.size()) - 6);
    }
    ASSERT_GT(primary_->log->head().offset.value, kRingBytes);
    if (reopen) {
      CloseLog();
      OpenLog();
    }
    ComeBack();
    ExpectJoined();
  }
}

// P-H25: it knows nothing, though it is of this epoch.
TEST_F(ResyncTest, SuspectMemberJoins) {
  OpenLog();
  Append(6);
  GoAway(/*power_cut=*/true);
  Append(2);
  ComeBack(/*suspect=*/true);
  EXPECT_EQ(counters().records_copied, 9u);
  ExpectJoined();
}

// P-H9: it has acknowledged it, so that no session begins before it.
TEST_F(ResyncTest, DamagedRecordIsCopied) {
  OpenLog();
  const LogPosition first = primary_->log->head();
  Append(4);
  ASSERT_TRUE(
      StepUntil([&] { return primary_->sink->replication_state().is_idle; }));
  GoAway(/*power_cut=*/false);
  world_->Damage(kJoiner, first);
  ComeBack();
  EXPECT_GE(counters().records_copied, 1u);
  ExpectJoined();
}

// RSY5. The damage lies before the place, where the report begins. By then the
// log's head is so near to the place that the joiner reads from the head on.
TEST_F(ResyncTest, DamageThatNoReportNamedIsLookedForByTheNextTry) {
  constexpr uint64_t kReadWhole = 3 * kRecordBytes;
  StartAgain(kReadWhole);
  OpenLog();
  Append(6);
  ASSERT_TRUE(
      StepUntil([&] { return primary_->sink->replication_state().is_idle; }));
  const LogPosition third = PositionOf(Lsn(3));
  GoAway(/*power_cut=*/false);
  world_->Damage(kJoiner, third);
  Clean(2);
  const RegionState joiner =
      *ReadRegionState(world_->pmem(kJoiner).region(), "joiner");
  const LogPosition place = joiner.proven_place();
  ASSERT_GT(place.offset - joiner.head().offset, kReadWhole);
  ASSERT_GT(place.offset, third.offset);
  ASSERT_LE(place.offset - third.offset, kReadWhole);
  ComeBack();
  EXPECT_GE(counters().records_copied, 1u);
  ExpectJoined();
}

// RSY5: the joiner gets what is damaged in the primary's own ring. No clock
// starts a scrub of that.
TEST_F(ResyncTest, DamageInTheOwnRingIsScrubbedForAJoiner) {
  OpenLog();
  Append(3);
  GoAway(/*power_cut=*/true);
  Append(3);
  CloseLog();
  OpenLog();
  ClaimReplica();
  world_->Damage(1, PositionOf(Lsn(5)));
  ComeBack();
  EXPECT_TRUE(
      StepUntil([&] { return primary_->upkeep->state().scrub_passes == 1; }));
  EXPECT_EQ(primary_->upkeep->state().scrubbed.repaired, 1u);
  ExpectJoined();
  EXPECT_EQ(world_->Payloads(1), live_);
}

// RSY5: the same, when it is a session that sends it. That one breaks, and the
// next tries meet the damage.
TEST_F(ResyncTest, DamageInTheOwnRingIsScrubbedForALaggingMember) {
  OpenLog();
  ClaimReplica();
  Append(3);
  GoAway(/*power_cut=*/false);
  Append(3);
  world_->Damage(1, PositionOf(Lsn(6)));
  ComeBack();
  EXPECT_TRUE(StepUntil([&] {
    return primary_->upkeep->state().scrub_passes == 1;
  })) << Why();
  EXPECT_EQ(primary_->upkeep->state().scrubbed.repaired, 1u);
  ASSERT_TRUE(StepUntil([&] { return in_sync() == 3; })) << Why();
  ExpectJoined();
  EXPECT_EQ(world_->Payloads(1), live_);
}

// JP5.
TEST_F(ResyncTest, BlankMemberDoesNotJoin) {
  OpenLog();
  Append(2);
  GoAway(/*power_cut=*/true);
  world_->Restart(kJoiner);
  world_->Reformat(kJoiner);
  ASSERT_TRUE(StepUntil([&] { return counters().failures >= 4; }));
  EXPECT_EQ(in_sync(), 2u);
  EXPECT_THAT(Why(), HasSubstr("is not a member of the log's configuration"));
  EXPECT_EQ(world_->replica(kJoiner).superline().log_epoch, Epoch(0));
}

// RSY3.
TEST_F(ResyncTest, MemberOfALaterPromiseIsNotAskedAgain) {
  OpenLog();
  GoAway(/*power_cut=*/true);
  world_->Restart(kJoiner);
  const quorum::Promise promise{primary_->opened->epoch + 1, {NodeId(7), 7}};
  const absl::Status promised =
      world_->replica(kJoiner).AcceptPromise(promise).status();
  ASSERT_TRUE(promised.ok()) << promised;
  const std::string says =
      "promised epoch " + std::to_string(promise.epoch.value);
  ASSERT_TRUE(StepUntil([&] { return Why().find(says) != std::string::npos; }));
  const uint64_t failures = counters().failures;
  EXPECT_FALSE(StepUntil([&] { return counters().failures > failures; }));
  Append(2);
  EXPECT_EQ(in_sync(), 2u);
}

// Tries in vain cost less and less.
TEST_F(ResyncTest, MemberThatStaysOutOfSyncIsTriedRarely) {
  OpenLog();
  GoAway(/*power_cut=*/true);
  const int64_t begin = world_->network().clock().NowNanos();
  ASSERT_TRUE(StepUntil([&] { return counters().failures == 8; })) << Why();
  // 200 us, doubled five times, and what each connection takes to fail.
  EXPECT_GE(world_->network().clock().NowNanos() - begin,
            200'000 * (1 + 2 + 4 + 8 + 16 + 32 + 32));
}

// RSY2: bytes that are compared and copied are not reused, whenever the ring is
// full and its head moves.
TEST_F(ResyncTest, LogThatIsWrittenMeanwhileStaysWhole) {
  for (int events = 0; events < 80; ++events) {
    SCOPED_TRACE(events);
    StartAgain();
    OpenLog();
    GoAway(/*power_cut=*/true);
    Append(9, 100);
    CloseLog();
    OpenLog();
    world_->Restart(kJoiner);
    for (int i = 0; i < events; ++i) StepOnce();
    Clean(2);
    Append(2, 100);
    ASSERT_TRUE(StepUntil([&] { return in_sync() == 3; })) << Why();
    ASSERT_EQ(counters().failures, 0u) << Why();
    ExpectJoined();
  }
}

// RSY2: nor is the log held up by a member that does nothing.
TEST_F(ResyncTest, MemberThatHoldsUpTheLogIsDropped) {
  OpenLog();
  Append(4, 100);
  GoAway(/*power_cut=*/true);
  world_->Restart(kJoiner);
  ASSERT_TRUE(StepUntil([&] {
    return primary_->sink->replication_state().reuse_limit.value > kRingBytes ||
           primary_->upkeep->resync().pinned().has_value();
  }));
  ASSERT_TRUE(primary_->upkeep->resync().pinned().has_value());
  world_->paused_host = kJoiner - 1;
  for (int i = 0; i < 40; ++i) {
    Append(1, 100);
    Clean(1);
  }
  EXPECT_EQ(in_sync(), 2u);
  EXPECT_THAT(Why(), HasSubstr("kept for it"));
  world_->paused_host = -1;
  ASSERT_TRUE(StepUntil([&] { return in_sync() == 3; })) << Why();
  ExpectJoined();
}

struct Before {
  const char* name;
  bool earlier_epoch;
  bool other_records;
};

class ResyncCutTest : public ResyncTest,
                      public ::testing::WithParamInterface<Before> {};

// The joiner's power is cut at any event, the primary goes for good, and the
// two that are left open the log: nothing acknowledged is missing (P-A5,
// P-H12).
TEST_P(ResyncCutTest, CutAtAnyEventLosesNothing) {
  int points = 0;
  for (int events = 0;; ++events) {
    SCOPED_TRACE(events);
    StartAgain();
    if (GetParam().other_records) {
      std::unique_ptr<Primary> lost = world_->Open(0);
      for (const char* text : {"x", "y"}) {
        world_->Append(*lost, text, {kJoiner});
      }
      world_->Crash(kJoiner);
    }
    OpenLog();
    Append(4);
    if (!GetParam().other_records) GoAway(/*power_cut=*/true);
    if (GetParam().earlier_epoch) {
      CloseLog();
      OpenLog();
    }
    Append(3);
    world_->Restart(kJoiner);
    const uint64_t joins = counters().joins;
    for (int i = 0; i < events; ++i) StepOnce();
    const bool has_joined = counters().joins != joins;
    if (has_joined) Append(2);
    world_->Crash(kJoiner);
    world_->Restart(kJoiner);
    ExpectAllIsThereWithoutNode1();
    if (HasFailure()) return;
    if (has_joined) break;
    ++points;
  }
  EXPECT_GT(points, 20);
}

INSTANTIATE_TEST_SUITE_P(Befores, ResyncCutTest,
                         ::testing::Values(Before{"ThisEpoch", false, false},
                                           Before{"EarlierEpoch", true, false},
                                           Before{"OtherRecords", true, true}),
                         [](const auto& before) {
                           return std::string(before.param.name);
                         });

}  // namespace
}  // namespace alpheus::testing
