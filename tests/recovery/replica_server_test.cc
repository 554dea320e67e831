// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "tests/recovery/served_world.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMillisecond = 1'000'000;

ServedWorld::Options Seeded(uint64_t seed) {
  ServedWorld::Options options;
  options.network.seed = seed;
  return options;
}

ServedWorld::Options WithLogB() {
  ServedWorld::Options options;
  options.serve_b = true;
  return options;
}

absl::StatusCode FailedWith(const std::optional<Message>& reply) {
  if (!reply.has_value() || !std::holds_alternative<Failed>(*reply)) {
    return absl::StatusCode::kOk;
  }
  return std::get<Failed>(*reply).status.code();
}

// What a power cut that keeps the least leaves of the log.
std::vector<std::string> PayloadsAfterACut(ServedWorld& world, Uuid log_id) {
  std::vector<std::byte> left = world.pmem(log_id).CutKeepingNone();
  return LivePayloads(left);
}

Lsn ProvenAfterACut(ServedWorld& world, Uuid log_id) {
  std::vector<std::byte> left = world.pmem(log_id).CutKeepingNone();
  return ReadRegionState(left, "cut")->ProvenLsn();
}

// Appends a record, and waits until the node has acknowledged it.
void Replicate(ServedWorld& world, Peer& peer, PrimaryLog& log,
               std::string_view text) {
  const Lsn lsn = log.Append(text);
  ASSERT_TRUE(peer.session->Advance(log.End()).ok());
  world.Run(kMillisecond);
  ASSERT_TRUE(peer.session_status.ok()) << peer.session_status;
  ASSERT_EQ(peer.session->acked_lsn(), lsn);
}

// --- The way to a session ----------------------------------------------------

TEST(ReplicaServerTest, FirstEpochLeadsToASessionThatPersists) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  EXPECT_EQ(peer.welcome, (Welcome{kNode, 101, kRingBytes, Epoch(0), 1}));
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  world.GetInstalled(peer, log);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(5));
  for (const char* text : {"a", "b", "c"}) Replicate(world, peer, log, text);
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a", "b", "c"));
  EXPECT_EQ(world.server().counters().installed, 1u);
  EXPECT_THAT(world.reports(), IsEmpty());
}

TEST(ReplicaServerTest, RecordsComeByWritesBeforeTheInstall) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  log.Append("a");
  log.Append("b");
  log.OpenEpoch(Epoch(6));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a", "b"));
  Replicate(world, peer, log, "c");
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a", "b", "c"));
}

TEST(ReplicaServerTest, AnswerIsReadFromRegisteredMemory) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& first = world.Connected(1, 1);
  world.GetInstalled(first, log);
  Replicate(world, first, log, "a");
  Peer& second = world.Connected(2, 1);
  EXPECT_EQ(second.welcome->promised, Epoch(5));
  const Promised promised = world.GetPromise(second, Epoch(7));
  EXPECT_LE(promised.answer_bytes, AnswerBytesMax(kRingBytes));
  std::vector<std::byte> bytes(promised.answer_bytes);
  std::vector<std::byte> ring(kRingBytes);
  ASSERT_TRUE(second.Read(promised.answer_key, 0, bytes).ok());
  ASSERT_TRUE(second.Read(promised.ring_key, 0, ring).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(second.done,
              ElementsAre(CompletionStatus::kOk, CompletionStatus::kOk));
  const auto answer = DecodeAnswer(kLogA, bytes);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->node, kNode);
  EXPECT_EQ(answer->log_epoch, Epoch(5));
  EXPECT_EQ(answer->promised_before, Epoch(5));
  EXPECT_THAT(answer->runs,
              ElementsAre(VerdictRun{Lsn(1), Lsn(2), Verdict::kHave, 0}));
  EXPECT_TRUE(std::ranges::equal(ring, world.RingBytes(kLogA)));
  // Prepared, the answer is forgotten, and the old key of the ring is not.
  world.GetPrepared(second, Epoch(7));
  ASSERT_TRUE(second.Read(promised.ring_key, 0, ring).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(second.done.back(), CompletionStatus::kOk);
  ASSERT_TRUE(second.Read(promised.answer_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(second.done.back(), CompletionStatus::kRemoteAccess);
}

TEST(ReplicaServerTest, RepairingIsSetWhenAsked) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  world.GetPromise(peer, Epoch(5));
  const auto reply = world.Ask(peer, Prepare{Epoch(5), true});
  ASSERT_TRUE(reply && std::holds_alternative<Prepared>(*reply));
  EXPECT_TRUE(world.State(kLogA).superline.repairing);
}

// A4.2: the primary hears of the promise when no power cut can take it back.
TEST(ReplicaServerTest, PromiseIsOnMediaBeforeItIsGiven) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 9);
  peer.Send(AskPromise{{Epoch(5), peer.self()}});
  while (world.server().counters().promised == 0) world.Run(1000);
  std::vector<std::byte> left = world.pmem(kLogA).CutKeepingNone();
  const Superline superline = ReadRegionState(left, "cut")->superline;
  EXPECT_EQ(PromiseOf(superline), (Promise{Epoch(5), peer.self()}));
}

// --- Refusals ----------------------------------------------------------------

TEST(ReplicaServerTest, RefusedOneHearsTheStandingPromiseAndMayAskAgain) {
  ServedWorld world({});
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  Peer& other = world.Connected(2, 1);
  const Message refused = Refused{{Epoch(5), holder.self()}};
  for (const uint64_t epoch : {4, 5}) {
    EXPECT_EQ(world.Ask(other, AskPromise{{Epoch(epoch), other.self()}}),
              refused);
  }
  // The holder has lost nothing by it, nor by asking for less.
  EXPECT_EQ(world.Ask(holder, AskPromise{{Epoch(4), holder.self()}}), refused);
  world.GetPrepared(holder, Epoch(5));
  world.GetPromise(other, Epoch(6));
  EXPECT_TRUE(holder.ended);
  EXPECT_EQ(world.server().counters().refused, 3u);
  EXPECT_EQ(world.server().counters().fenced, 1u);
}

TEST(ReplicaServerTest, HolderMayAskForMoreAndItsKeysAreVoidThen) {
  ServedWorld world({});
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  const Prepared prepared = world.GetPrepared(holder, Epoch(5));
  world.GetPromise(holder, Epoch(6));
  std::vector<std::byte> bytes(64, std::byte{1});
  ASSERT_TRUE(holder.Write(prepared.ring_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(holder.done.back(), CompletionStatus::kRemoteAccess);
}

TEST(ReplicaServerTest, StrangersAreRejectedAndHearWhy) {
  ServedWorld::Options options;
  options.server.waiting_connections_max = 2;
  ServedWorld world(options);
  const auto rejected = [&world](std::string_view bytes) {
    Peer& peer = world.NewPeer(1, 1);
    peer.ConnectSaying(world.address(), bytes);
    world.Run(100'000);
    EXPECT_TRUE(peer.ended);
    return peer.rejection;
  };
  const Hello good{kCluster, kLogA, {NodeId(2), 1}};
  Hello hello = good;
  hello.cluster_id = {1, 1};
  EXPECT_EQ(rejected(EncodeHello(hello)).code(),
            absl::StatusCode::kFailedPrecondition);
  hello = good;
  hello.log_id = kLogB;
  EXPECT_TRUE(absl::IsNotFound(rejected(EncodeHello(hello))));
  EXPECT_TRUE(absl::IsInvalidArgument(rejected("good day")));
  std::string newer = EncodeHello(good);
  newer[4] = 2;
  const absl::Status version = rejected(newer);
  EXPECT_TRUE(absl::IsUnimplemented(version)) << version;
  EXPECT_THAT(version.message(), HasSubstr("here: version 1"));
  // Too many: those with a promise don't count.
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  world.Connected(1, 1);
  world.Connected(1, 1);
  EXPECT_EQ(rejected(EncodeHello(good)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(world.server().counters().rejected, 5u);
  EXPECT_EQ(world.server().counters().accepted, 3u);
}

TEST(ReplicaServerTest, PromiseIsForTheProcessThatConnected) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  EXPECT_EQ(
      FailedWith(world.Ask(peer, AskPromise{{Epoch(5), {NodeId(2), 99}}})),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world.State(kLogA).superline.promised_epoch, Epoch(0));
}

// --- What comes out of turn --------------------------------------------------

enum class At { kControl, kPromised, kPrepared };

Peer& PeerAt(ServedWorld& world, At phase, Epoch epoch) {
  Peer& peer = world.Connected(2, epoch.value);
  if (phase >= At::kPromised) world.GetPromise(peer, epoch);
  if (phase >= At::kPrepared) world.GetPrepared(peer, epoch);
  return peer;
}

std::vector<Message> EveryMessage(const Peer& peer, Epoch epoch,
                                  const Installation& installation) {
  return {Format{1 << 20, MembersOf(), "a"},
          Formatted{},
          AskPromise{{epoch, peer.self()}},
          Promised{RegionKey(1), 1, RegionKey(2)},
          Refused{{epoch, peer.self()}},
          Prepare{epoch, false},
          Prepared{RegionKey(1)},
          Install{installation, kTheSession, 4},
          Installed{},
          Failed{absl::InternalError("x")},
          View{},
          Viewed{RegionKey(1), 1},
          Release{},  // nobody here wants it
          Released{}};
}

bool IsInTurn(At phase, const Message& message) {
  if (std::holds_alternative<AskPromise>(message)) return true;
  if (std::holds_alternative<View>(message)) return phase == At::kControl;
  if (phase == At::kPromised) return std::holds_alternative<Prepare>(message);
  return phase == At::kPrepared && std::holds_alternative<Install>(message);
}

// In every phase every message that has no place there: Failed, and the end of
// that connection. A session of another log never notices.
TEST(ReplicaServerTest, MessageOutOfTurnEndsItsConnectionOnly) {
  for (const At phase : {At::kControl, At::kPromised, At::kPrepared}) {
    ServedWorld world(WithLogB());
    PrimaryLog log_b(kLogB);
    log_b.OpenEpoch(Epoch(3));
    Peer& bystander = world.Connected(1, 1, kLogB);
    world.GetInstalled(bystander, log_b);
    uint64_t reports = 0;
    for (uint64_t kind = 0; kind < std::variant_size_v<Message>; ++kind) {
      const Epoch epoch(10 + kind);
      PrimaryLog log(kLogA);
      log.OpenEpoch(epoch);
      Peer& peer = PeerAt(world, phase, epoch);
      const Message message =
          EveryMessage(peer, epoch, log.installation())[kind];
      const auto reply = world.Ask(peer, message);
      ASSERT_TRUE(reply.has_value()) << static_cast<int>(phase) << ", " << kind;
      if (IsInTurn(phase, message)) {
        EXPECT_EQ(FailedWith(reply), absl::StatusCode::kOk);
        ASSERT_TRUE(peer.Close().ok());
        world.Run(kMillisecond);
        reports = world.reports().size();
        continue;
      }
      EXPECT_NE(FailedWith(reply), absl::StatusCode::kOk)
          << static_cast<int>(phase) << ", " << kind;
      world.Run(kMillisecond);
      EXPECT_TRUE(peer.ended);
      EXPECT_THAT(world.reports(), SizeIs(++reports));
      EXPECT_EQ(world.server().connection_count(), 1u);
    }
    EXPECT_FALSE(bystander.ended);
    Replicate(world, bystander, log_b, "b");
  }
}

TEST(ReplicaServerTest, NonsenseEndsItsConnectionOnly) {
  ServedWorld world(WithLogB());
  PrimaryLog log_b(kLogB);
  log_b.OpenEpoch(Epoch(3));
  Peer& bystander = world.Connected(1, 1, kLogB);
  world.GetInstalled(bystander, log_b);
  Random random(7);
  for (size_t bytes = 1; bytes <= 4096; bytes *= 4) {
    std::vector<std::byte> nonsense(bytes);
    for (std::byte& b : nonsense) b = static_cast<std::byte>(random.Next());
    Peer& peer = world.Connected(2, 1);
    peer.SendBytes(nonsense);
    world.Run(kMillisecond);
    ASSERT_THAT(peer.replies, SizeIs(1));
    EXPECT_EQ(FailedWith(peer.replies.front()),
              absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(peer.ended);
    Replicate(world, bystander, log_b, absl::StrCat(bytes));
  }
  // An immediate has no place before the session.
  Peer& early = world.Connected(2, 1);
  ASSERT_TRUE(early.Announce(1).ok());
  world.Run(kMillisecond);
  EXPECT_TRUE(early.ended);
  Replicate(world, bystander, log_b, "last");
  EXPECT_FALSE(bystander.ended);
}

TEST(ReplicaServerTest, OtherEpochsThanThePromisedOneFail) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(9));
  for (const uint64_t epoch : {7, 9}) {
    Peer& peer = PeerAt(world, At::kPromised, Epoch(8));
    EXPECT_EQ(FailedWith(world.Ask(peer, Prepare{Epoch(epoch), true})),
              absl::StatusCode::kFailedPrecondition);
    world.Run(kMillisecond);
  }
  Peer& peer = PeerAt(world, At::kPrepared, Epoch(8));
  EXPECT_EQ(
      FailedWith(world.Ask(peer, Install{log.installation(), kTheSession, 4})),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(world.State(kLogA).superline.repairing);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
}

TEST(ReplicaServerTest, OnlyTheHolderInstalls) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  world.GetPrepared(holder, Epoch(5));
  Peer& other = world.Connected(2, 1);
  const Install install{log.installation(), kTheSession, 4};
  EXPECT_EQ(FailedWith(world.Ask(other, install)),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
  EXPECT_EQ(world.Ask(holder, install), Message(Installed{}));
}

TEST(ReplicaServerTest, LogThatIsNotThereIsNotInstalled) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  log.Append("a");
  log.OpenEpoch(Epoch(6));
  Peer& peer = PeerAt(world, At::kPrepared, Epoch(6));
  EXPECT_EQ(
      FailedWith(world.Ask(peer, Install{log.installation(), kTheSession, 4})),
      absl::StatusCode::kDataLoss);
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  // The replica is ready for the next one.
  log.OpenEpoch(Epoch(7));
  world.GetInstalled(world.Connected(2, 2), log);
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a"));
}

TEST(ReplicaServerTest, MoreCreditsThanReceivesAreRefused) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = PeerAt(world, At::kPrepared, Epoch(5));
  EXPECT_EQ(FailedWith(
                world.Ask(peer, Install{log.installation(), kTheSession, 129})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
}

// Two requests at once: the second waits for its turn.
TEST(ReplicaServerTest, RequestThatDoesNotWaitForItsReplyIsRepliedTo) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ServedWorld world(Seeded(seed));
    Peer& peer = world.Connected(1, 1);
    peer.Send(AskPromise{{Epoch(5), peer.self()}});
    peer.Send(AskPromise{{Epoch(5), peer.self()}});
    world.Run(kMillisecond);
    EXPECT_FALSE(peer.ended) << seed;
    EXPECT_EQ(world.server().counters().promised, 2u) << seed;
  }
}

// --- Fences ------------------------------------------------------------------

TEST(ReplicaServerTest, RingIsOnlyReadableUntilPrepared) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  const Promised promised = world.GetPromise(peer, Epoch(5));
  std::vector<std::byte> bytes(64, std::byte{1});
  ASSERT_TRUE(peer.Write(promised.ring_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(peer.done, ElementsAre(CompletionStatus::kRemoteAccess));
  EXPECT_EQ(world.RingBytes(kLogA)[0], std::byte{0});
}

// R2: the connection was closed, and still its key must not open the ring on
// another one.
TEST(ReplicaServerTest, KeyOfAFencedSessionOpensNothing) {
  ServedWorld world({});
  Peer& old = world.Connected(1, 1);
  world.GetPromise(old, Epoch(5));
  const Prepared prepared = world.GetPrepared(old, Epoch(5));
  Peer& holder = world.Connected(2, 1);
  world.GetPromise(holder, Epoch(6));
  Peer& again = world.Connected(1, 1);
  std::vector<std::byte> bytes(64, std::byte{1});
  ASSERT_TRUE(again.Write(prepared.ring_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(again.done, ElementsAre(CompletionStatus::kRemoteAccess));
  EXPECT_EQ(world.RingBytes(kLogA)[0], std::byte{0});
}

// H6, R2, INV-6: an old primary is in the middle of writing, some of it late on
// broken connections, when the next one gets the promise. What the scan saw is
// what stays.
TEST(ReplicaServerTest, NoByteOfTheRingChangesOnceItIsLookedAt) {
  int cut_off = 0;
  int landed = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    ServedWorld::Options options = Seeded(seed);
    options.network.packet_bytes = 64;
    options.scan_ns = 30'000;
    ServedWorld world(options);
    Peer& old = world.Connected(1, 1);
    world.GetPromise(old, Epoch(5));
    const Prepared prepared = world.GetPrepared(old, Epoch(5));
    Peer& next = world.Connected(2, 1);
    next.Send(AskPromise{{Epoch(6), next.self()}});
    world.Run(static_cast<int64_t>(random.Below(4'000)));
    std::vector<std::byte> bytes(kRingBytes, std::byte{0x5a});
    for (uint64_t at = 0; at < kRingBytes; at += 2048) {
      // The old connection may be gone already.
      old.Write(prepared.ring_key, at, std::span(bytes).subspan(at, 2048))
          .IgnoreError();
    }
    if (random.Below(4) == 0) {
      world.network().Run(static_cast<int64_t>(random.Below(3'000)));
      old.Close().IgnoreError();
    }
    while (next.replies.empty()) world.Run(1'000);
    world.Run(kMillisecond);
    const std::vector<std::byte>& seen = world.log(kLogA).seen;
    ASSERT_TRUE(std::ranges::equal(seen, world.RingBytes(kLogA)))
        << "seed " << seed;
    const auto count = std::ranges::count(seen, std::byte{0x5a});
    if (count > 0) ++landed;
    if (count > 0 && static_cast<uint64_t>(count) < kRingBytes) ++cut_off;
  }
  // Otherwise nothing was tried.
  EXPECT_GT(landed, 20);
  EXPECT_GT(cut_off, 10);
}

// A4.2: same process, same epoch.
TEST(ReplicaServerTest, PromiseOfTheSameProcessEndsItsEarlierSession) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& first = world.Connected(1, 1);
  world.GetInstalled(first, log);
  Replicate(world, first, log, "a");
  EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(0));
  Peer& again = world.Connected(1, 1);
  world.GetPromise(again, Epoch(5));
  world.Run(kMillisecond);
  EXPECT_TRUE(first.ended);
  EXPECT_EQ(world.server().counters().fenced, 1u);
  // The session that ended left its watermark.
  EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(1));
  EXPECT_EQ(world.server().connection_count(), 1u);
}

TEST(ReplicaServerTest, OfTwoThatRaceTheHigherOneStays) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ServedWorld world(Seeded(seed));
    Peer& low = world.Connected(1, 1);
    Peer& high = world.Connected(2, 1);
    low.Send(AskPromise{{Epoch(5), low.self()}});
    high.Send(AskPromise{{Epoch(6), high.self()}});
    world.Run(kMillisecond);
    ASSERT_THAT(high.replies, SizeIs(1)) << seed;
    EXPECT_TRUE(std::holds_alternative<Promised>(high.replies.front()));
    if (!low.ended) {
      ASSERT_THAT(low.replies, SizeIs(1)) << seed;
      EXPECT_EQ(low.replies.front(), Message(Refused{{Epoch(6), high.self()}}));
    }
    high.replies.clear();
    world.GetPrepared(high, Epoch(6));
  }
}

TEST(ReplicaServerTest, LogsOfOneNodeDoNotDisturbEachOther) {
  ServedWorld world(WithLogB());
  PrimaryLog log_a(kLogA);
  PrimaryLog log_b(kLogB);
  log_a.OpenEpoch(Epoch(5));
  log_b.OpenEpoch(Epoch(3));
  Peer& a = world.Connected(1, 1, kLogA);
  Peer& b = world.Connected(1, 1, kLogB);
  world.GetInstalled(a, log_a);
  world.GetInstalled(b, log_b);
  Replicate(world, a, log_a, "a");
  Replicate(world, b, log_b, "b");
  world.GetPromise(world.Connected(2, 1, kLogA), Epoch(9));
  EXPECT_TRUE(a.ended);
  EXPECT_FALSE(b.ended);
  Replicate(world, b, log_b, "c");
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a"));
  EXPECT_THAT(PayloadsAfterACut(world, kLogB), ElementsAre("b", "c"));
}

// --- Ends --------------------------------------------------------------------

// Phases 0 to 2 as At, 3: a session. The next primary finds the replica ready.
TEST(ReplicaServerTest, PrimaryThatCrashesLeavesTheReplicaReady) {
  for (int phase = 0; phase <= 3; ++phase) {
    for (const bool is_crash : {false, true}) {
      ServedWorld world({});
      PrimaryLog log(kLogA);
      log.OpenEpoch(Epoch(5));
      Peer& peer = world.Connected(1, 1);
      if (phase == 3) {
        world.GetInstalled(peer, log);
        Replicate(world, peer, log, "a");
      } else {
        if (phase >= 1) world.GetPromise(peer, Epoch(5));
        if (phase >= 2) world.GetPrepared(peer, Epoch(5));
      }
      if (is_crash) {
        world.Crash(1);
      } else {
        ASSERT_TRUE(peer.Close().ok());
      }
      world.Run(kMillisecond);
      if (!is_crash) {
        EXPECT_EQ(world.server().connection_count(), 0u);
        EXPECT_THAT(world.reports(), SizeIs(phase == 0 ? 0 : 1));
        // The session's end persisted its watermark.
        if (phase == 3) {
          EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(1));
        }
      }
      PrimaryLog next(kLogA);
      if (phase == 3) {
        next.OpenEpoch(Epoch(5));
        next.Append("a");
      }
      next.OpenEpoch(Epoch(6));
      Peer& second = world.Connected(2, 1);
      world.GetInstalled(second, next);
      Replicate(world, second, next, "b");
      EXPECT_EQ(world.server().counters().fenced,
                is_crash && phase > 0 ? 1u : 0u);
    }
  }
}

TEST(ReplicaServerTest, KeysOfAConnectionThatEndedAreVoid) {
  ServedWorld world({});
  Peer& gone = world.Connected(1, 1);
  const Promised promised = world.GetPromise(gone, Epoch(5));
  const Prepared prepared = world.GetPrepared(gone, Epoch(5));
  ASSERT_TRUE(gone.Close().ok());
  world.Run(kMillisecond);
  for (const RegionKey key : {promised.ring_key, prepared.ring_key}) {
    Peer& again = world.Connected(1, 1);
    std::vector<std::byte> bytes(64);
    ASSERT_TRUE(again.Read(key, 0, bytes).ok());
    world.Run(kMillisecond);
    EXPECT_THAT(again.done, ElementsAre(CompletionStatus::kRemoteAccess));
  }
}

TEST(ReplicaServerTest, SessionThatAnnouncesNonsenseEndsAndIsReportedOnce) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  Replicate(world, peer, log, "a");
  ASSERT_TRUE(peer.Announce(9999).ok());
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports()[0], HasSubstr("announced"));
  EXPECT_EQ(world.server().counters().failed, 1u);
  EXPECT_EQ(world.server().connection_count(), 0u);
  world.GetPromise(world.Connected(2, 1), Epoch(6));
}

TEST(ReplicaServerTest, SessionWhoseMediumFailsEndsAndIsReported) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  world.pmem(kLogA).FailFence(1);
  log.Append("a");
  ASSERT_TRUE(peer.session->Advance(log.End()).ok());
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  EXPECT_EQ(peer.session->acked_lsn(), Lsn(0));
  EXPECT_THAT(world.reports(), SizeIs(1));
}

// The watermark's own fence fails: of the session's end, both are said.
TEST(ReplicaServerTest, WatermarkThatCannotBePersistedIsReported) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  Replicate(world, peer, log, "a");
  world.pmem(kLogA).FailFence(1);
  ASSERT_TRUE(peer.Close().ok());
  world.Run(kMillisecond);
  EXPECT_THAT(world.reports(), SizeIs(2));
}

TEST(ReplicaServerTest, MediumThatFailsGivesNoPromise) {
  ServedWorld world({});
  world.pmem(kLogA).FailFence(1);
  Peer& peer = world.Connected(1, 1);
  EXPECT_EQ(FailedWith(world.Ask(peer, AskPromise{{Epoch(5), peer.self()}})),
            absl::StatusCode::kUnavailable);
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  EXPECT_EQ(world.server().counters().promised, 0u);
}

// The promise stands, but there is no answer.
TEST(ReplicaServerTest, MediumThatFailsInTheScanGivesNoAnswer) {
  int without_answer = 0;
  for (uint64_t fence = 1; fence <= 8; ++fence) {
    ServedWorld world({});
    world.pmem(kLogA).FailFence(fence);
    Peer& peer = world.Connected(1, 1);
    const auto reply = world.Ask(peer, AskPromise{{Epoch(5), peer.self()}});
    if (FailedWith(reply) == absl::StatusCode::kOk) continue;
    const Superline superline = world.State(kLogA).superline;
    if (superline.promised_epoch == Epoch(5)) ++without_answer;
  }
  EXPECT_GT(without_answer, 0);
}

// --- Time --------------------------------------------------------------------

TEST(ReplicaServerTest, ConnectionThatAsksForNothingIsClosedInTheEnd) {
  ServedWorld::Options options;
  options.server.silence_ns_max = 5 * kMillisecond;
  ServedWorld world(options);
  EXPECT_FALSE(world.server().NextDeadline().is_set());
  Peer& silent = world.Connected(1, 1);
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  EXPECT_TRUE(world.server().NextDeadline().is_set());
  EXPECT_FALSE(world.server().NextDeadline().HasPassed(
      world.network().clock().NowNanos()));
  world.Run(10 * kMillisecond);
  EXPECT_TRUE(silent.ended);
  EXPECT_FALSE(holder.ended);
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports()[0], HasSubstr("asked for nothing"));
  EXPECT_FALSE(world.server().NextDeadline().is_set());
}

TEST(ReplicaServerTest, WatermarkIsPersistedOncePerIdlePeriod) {
  ServedWorld::Options options;
  options.server.idle_ns = 2 * kMillisecond;
  ServedWorld world(options);
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  const WatchedLog& served = world.log(kLogA);
  world.Run(10 * kMillisecond);
  EXPECT_EQ(served.watermarks, 0);
  for (int i = 1; i <= 3; ++i) {
    Replicate(world, peer, log, "x");
    EXPECT_EQ(served.watermarks, i - 1);
    EXPECT_TRUE(world.server().NextDeadline().is_set());
    world.Run(10 * kMillisecond);
    EXPECT_EQ(served.watermarks, i);
    EXPECT_FALSE(world.server().NextDeadline().is_set());
    EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(static_cast<uint64_t>(i)));
  }
}

// --- Logs come and go --------------------------------------------------------

TEST(ReplicaServerTest, RemovedLogEndsItsConnectionsAndMayComeBack) {
  ServedWorld world(WithLogB());
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& session = world.Connected(1, 1);
  world.GetInstalled(session, log);
  Replicate(world, session, log, "a");
  Peer& waiting = world.Connected(2, 1);
  Peer& other = world.Connected(2, 1, kLogB);
  auto removed = world.server().RemoveLog(kLogA);
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(1));
  world.Run(kMillisecond);
  EXPECT_TRUE(session.ended);
  EXPECT_TRUE(waiting.ended);
  EXPECT_FALSE(other.ended);
  EXPECT_TRUE(absl::IsNotFound(world.server().RemoveLog(kLogA).status()));
  Peer& stranger = world.NewPeer(1, 1);
  stranger.Connect(world.address(), stranger.HelloOf(kLogA));
  world.Run(kMillisecond);
  EXPECT_TRUE(absl::IsNotFound(stranger.rejection));
  ASSERT_TRUE(world.server().AddLog(*std::move(removed)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(world.server().AddLog(
      std::make_unique<WatchedLog>(world.pmem(kLogA), nullptr))));
  world.GetPromise(world.Connected(1, 1), Epoch(6));
}

class TestCreator final : public LogCreator {
 public:
  absl::StatusOr<std::unique_ptr<ServedLog>> Create(
      Uuid log_id, const Format& format) override {
    asked = format;
    if (format.region_bytes == 0) {
      return absl::InvalidArgumentError("a region of no bytes");
    }
    pmem_ = FormattedRegion(log_id, kNode);
    return std::make_unique<WatchedLog>(*pmem_, nullptr);
  }

  Format asked;

 private:
  std::unique_ptr<ModelPersistence> pmem_;
};

TEST(ReplicaServerTest, UnknownLogIsMadeOnDemand) {
  TestCreator creator;
  ServedWorld::Options options;
  options.server.creator = &creator;
  ServedWorld world(options);
  const Format format{1 << 20, MembersOf(), "orders"};
  // Not before it is formatted.
  Peer& hasty = world.Connected(1, 1, kLogB);
  EXPECT_EQ(hasty.welcome, (Welcome{kNode, 0, 0, Epoch(0), 0}));
  EXPECT_EQ(FailedWith(world.Ask(hasty, AskPromise{{Epoch(5), hasty.self()}})),
            absl::StatusCode::kFailedPrecondition);
  // What the creator says against it.
  Peer& wrong = world.Connected(1, 1, kLogB);
  EXPECT_EQ(FailedWith(world.Ask(wrong, Format{0, MembersOf(), "orders"})),
            absl::StatusCode::kInvalidArgument);
  Peer& first = world.Connected(1, 1, kLogB);
  Peer& second = world.Connected(2, 1, kLogB);
  EXPECT_EQ(world.Ask(first, format), Message(Formatted{}));
  EXPECT_EQ(creator.asked, format);
  EXPECT_EQ(world.server().counters().formatted, 1u);
  EXPECT_EQ(FailedWith(world.Ask(second, format)),
            absl::StatusCode::kAlreadyExists);
  world.GetPromise(first, Epoch(5));
  Peer& later = world.Connected(2, 1, kLogB);
  EXPECT_EQ(later.welcome, (Welcome{kNode, 101, kRingBytes, Epoch(5), 1}));
  // A log that was there from the start is not made again.
  EXPECT_EQ(FailedWith(world.Ask(world.Connected(1, 1), format)),
            absl::StatusCode::kAlreadyExists);
  // Keys of the region that the creator owns must not outlive it.
  EXPECT_TRUE(world.server().RemoveLog(kLogB).ok());
}

TEST(ReplicaServerTest, WhatIsNotOfTheServerIsLeftToOthers) {
  ServedWorld world({});
  ConnectionEvent event;
  event.kind = ConnectionEvent::Kind::kDisconnected;
  event.connection = ConnectionId(1'000'000);
  EXPECT_FALSE(world.server().Take(event));
  Completion completion;
  completion.connection = ConnectionId(1'000'000);
  EXPECT_FALSE(world.server().Take(completion));
}

// --- Those who only look, and those who want the file ------------------------

TEST(ReplicaServerTest, RegionIsReadWithoutAPromise) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& primary = world.Connected(1, 1);
  world.GetInstalled(primary, log);
  Replicate(world, primary, log, "a");
  Peer& reader = world.Connected(2, 1);
  const auto reply = world.Ask(reader, View{});
  ASSERT_TRUE(reply && std::holds_alternative<Viewed>(*reply));
  const Viewed viewed = std::get<Viewed>(*reply);
  EXPECT_EQ(viewed.region_bytes, world.log(kLogA).region().size());
  std::vector<std::byte> image(viewed.region_bytes);
  ASSERT_TRUE(reader.Read(viewed.region_key, 0, image).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(LivePayloads(image), ElementsAre("a"));
  // Nobody was fenced, and nothing can be written with that key.
  Replicate(world, primary, log, "b");
  std::vector<std::byte> bytes(8);
  ASSERT_TRUE(reader.Write(viewed.region_key, 0, bytes).ok());
  world.Run(kMillisecond);
  ASSERT_THAT(reader.done, SizeIs(2));
  EXPECT_EQ(reader.done[1], CompletionStatus::kRemoteAccess);
  Replicate(world, primary, log, "c");
}

TEST(ReplicaServerTest, HolderOfThePromiseHasNoViewOfTheRest) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  world.GetPromise(peer, Epoch(5));
  EXPECT_EQ(FailedWith(world.Ask(peer, View{})),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ReplicaServerTest, RegionIsReleasedOnlyWhereThatIsWanted) {
  ServedWorld refusing({});
  EXPECT_EQ(FailedWith(refusing.Ask(refusing.Connected(1, 1), Release{})),
            absl::StatusCode::kFailedPrecondition);
  std::vector<Uuid> released;
  ServedWorld::Options options;
  options.server.release = [&](Uuid log_id) { released.push_back(log_id); };
  ServedWorld world(options);
  // A process of another machine can't take the file.
  EXPECT_EQ(FailedWith(world.Ask(world.Connected(1, 1), Release{})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(released, IsEmpty());
  Peer& own = world.NewPeer(1, 2);
  Hello hello = own.HelloOf(kLogA);
  hello.primary.node = kNode;
  own.Connect(world.address(), hello);
  world.Run(kMillisecond);
  const auto reply = world.Ask(own, Release{});
  ASSERT_TRUE(reply && std::holds_alternative<Released>(*reply));
  EXPECT_THAT(released, ElementsAre(kLogA));
}

TEST(ReplicaServerTest, LogThatIsNotServedIsNamedSo) {
  ServedWorld::Options options;
  options.server.unserved = [](Uuid log_id) {
    return log_id == kLogB ? absl::UnavailableError("another process has it")
                           : absl::OkStatus();
  };
  ServedWorld world(options);
  Peer& peer = world.NewPeer(1, 1);
  peer.Connect(world.address(), peer.HelloOf(kLogB));
  world.Run(kMillisecond);
  EXPECT_FALSE(peer.established);
  EXPECT_EQ(peer.rejection, absl::UnavailableError("another process has it"));
}

}  // namespace
}  // namespace alpheus::testing
