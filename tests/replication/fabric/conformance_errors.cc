// SPDX-License-Identifier: Apache-2.0
// Refusals, broken connections, and the fences: FB3 to FB6.
#include <limits>

#include "tests/replication/fabric/conformance.h"

namespace alpheus::testing {

using fabric::CompletionStatus;
using fabric::ConnectionId;
using fabric::Fabric;
using fabric::RemoteAddress;
using fabric::WorkId;

namespace {

using enum fabric::RemoteAccess;
using Kind = fabric::ConnectionEvent::Kind;

// Posts one operation on 8 bytes, or `bytes`, of the remote region.
using Attempt = absl::Status (*)(Fabric&, ConnectionId, const TestRegion& own,
                                 RemoteAddress, uint64_t bytes);

constexpr WorkId kWork{1};

absl::Status Write(Fabric& fabric, ConnectionId id, const TestRegion& own,
                   RemoteAddress to, uint64_t bytes) {
  return fabric.PostWrite(id, kWork, own.Local(0, bytes), to);
}
absl::Status WriteImmediate(Fabric& fabric, ConnectionId id,
                            const TestRegion& own, RemoteAddress to,
                            uint64_t bytes) {
  return fabric.PostWriteImmediate(id, kWork, own.Local(0, bytes), to, 1);
}
absl::Status Read(Fabric& fabric, ConnectionId id, const TestRegion& own,
                  RemoteAddress from, uint64_t bytes) {
  return fabric.PostRead(id, kWork, own.Local(0, bytes), from);
}
absl::Status Flush(Fabric& fabric, ConnectionId id, const TestRegion& /*own*/,
                   RemoteAddress range, uint64_t bytes) {
  return fabric.PostFlush(id, kWork, range, bytes);
}
absl::Status CompareSwap(Fabric& fabric, ConnectionId id, const TestRegion& own,
                         RemoteAddress word, uint64_t /*bytes*/) {
  return fabric.PostCompareSwap(id, kWork, own.Local(0, 8), word, 0, 1);
}
absl::Status FetchAdd(Fabric& fabric, ConnectionId id, const TestRegion& own,
                      RemoteAddress word, uint64_t /*bytes*/) {
  return fabric.PostFetchAdd(id, kWork, own.Local(0, 8), word, 1);
}

constexpr Attempt kWrites[] = {Write, WriteImmediate};
constexpr Attempt kReads[] = {Read, Flush};
constexpr Attempt kAtomics[] = {CompareSwap, FetchAdd};
constexpr Attempt kWritesAndReads[] = {Write, WriteImmediate, Read, Flush};
constexpr Attempt kAllOperations[] = {Write, WriteImmediate, Read,
                                      Flush, CompareSwap,    FetchAdd};

constexpr auto kRemoteAccess = CompletionStatus::kRemoteAccess;

// FB4, at each edge, also where offset and length overflow.
TEST_P(FabricConformanceTest, BytesOutsideTheRegionAreRefused) {
  constexpr uint64_t kBytes = 256;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const TestRegion own = MakeRegion(0, 1024, kNone);
  const auto attempt_on = [&](Attempt attempt, RemoteAddress address,
                              uint64_t bytes, CompletionStatus expected) {
    SCOPED_TRACE(::testing::Message()
                 << bytes << " bytes at offset " << address.offset);
    ExpectOutcome(
        [&](ConnectionId id) {
          return attempt(fabric(0), id, own, address, bytes);
        },
        expected);
  };
  own.Fill(1);
  const TestRegion remote = MakeRegion(1, kBytes, kAll);
  for (const Attempt attempt : kWritesAndReads) {
    attempt_on(attempt, remote.At(0), kBytes, CompletionStatus::kOk);
    attempt_on(attempt, remote.At(kBytes - 1), 1, CompletionStatus::kOk);
    attempt_on(attempt, remote.At(0), kBytes + 1, kRemoteAccess);
    attempt_on(attempt, remote.At(kBytes), 1, kRemoteAccess);
    attempt_on(attempt, remote.At(kBytes - 7), 8, kRemoteAccess);
    attempt_on(attempt, remote.At(kMax), 1, kRemoteAccess);
    attempt_on(attempt, remote.At(kMax), 2, kRemoteAccess);
    attempt_on(attempt, remote.At(kMax - 7), 16, kRemoteAccess);
  }
  for (const Attempt attempt : kAtomics) {
    attempt_on(attempt, remote.At(kBytes - 8), 8, CompletionStatus::kOk);
    attempt_on(attempt, remote.At(kBytes), 8, kRemoteAccess);
    attempt_on(attempt, remote.At(kMax - 7), 8, kRemoteAccess);
  }
}

// FB4, of an atomic write, and what never is one.
TEST_P(FabricConformanceTest, AtomicWriteIsOfOneWordThatMayBeWritten) {
  if (!fabric(0).limits().atomic_write) return;
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion remote = MakeRegion(1, 64, kWrite);
  const TestRegion readable = MakeRegion(1, 64, kRead);
  const auto post_of = [&](RemoteAddress to, uint64_t bytes = 8) {
    return [&, to, bytes](ConnectionId id) {
      return fabric(0).PostWriteAtomic(id, kWork, own.Local(0, bytes), to);
    };
  };
  own.Fill(6);
  ExpectOutcome(post_of(remote.At(56)), CompletionStatus::kOk);
  EXPECT_EQ(remote.Word(56), own.Word(0));
  ExpectOutcome(post_of(remote.At(64)), kRemoteAccess);
  ExpectOutcome(post_of({fabric::RegionKey(remote.key.value + 1), 0}),
                kRemoteAccess);
  ExpectOutcome(post_of(readable.At(0)), kRemoteAccess);
  EXPECT_TRUE(readable.IsAll(0));
  const ConnectionId link = Link(0, 1).at_host;
  for (const auto& post : {post_of(remote.At(4)), post_of(remote.At(0), 4),
                           post_of(remote.At(0), 16), post_of({}, 0)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(post(link)));
  }
}

// FB4: what was not granted leaves the memory as it is, at both ends.
TEST_P(FabricConformanceTest, AccessThatWasNotGrantedIsRefused) {
  const TestRegion own = MakeRegion(0, 64, kNone);
  const auto attempt_on = [&](Attempt attempt, RemoteAddress address,
                              uint64_t bytes, CompletionStatus expected) {
    SCOPED_TRACE(::testing::Message()
                 << bytes << " bytes at offset " << address.offset);
    ExpectOutcome(
        [&](ConnectionId id) {
          return attempt(fabric(0), id, own, address, bytes);
        },
        expected);
  };
  const TestRegion regions[] = {
      MakeRegion(1, 64, kNone), MakeRegion(1, 64, kRead),
      MakeRegion(1, 64, kWrite), MakeRegion(1, 64, kReadWrite)};
  for (const TestRegion& region : regions) region.Fill(4);
  own.Fill(9);
  for (const Attempt attempt : kWrites) {
    attempt_on(attempt, regions[0].At(0), 64, kRemoteAccess);
    attempt_on(attempt, regions[1].At(0), 64, kRemoteAccess);
  }
  for (const Attempt attempt : kReads) {
    attempt_on(attempt, regions[0].At(0), 64, kRemoteAccess);
    attempt_on(attempt, regions[2].At(0), 64, kRemoteAccess);
  }
  for (const Attempt attempt : kAtomics) {
    for (const TestRegion& region : regions) {
      attempt_on(attempt, region.At(0), 8, kRemoteAccess);
    }
  }
  for (const TestRegion& region : regions) EXPECT_TRUE(region.IsAll(4));
  EXPECT_TRUE(own.IsAll(9));
}

TEST_P(FabricConformanceTest, KeyThatIsNotIssuedIsRefused) {
  const TestRegion own = MakeRegion(0, 64, kNone);
  const auto attempt_on = [&](Attempt attempt, RemoteAddress address,
                              uint64_t bytes, CompletionStatus expected) {
    SCOPED_TRACE(::testing::Message()
                 << bytes << " bytes at offset " << address.offset);
    ExpectOutcome(
        [&](ConnectionId id) {
          return attempt(fabric(0), id, own, address, bytes);
        },
        expected);
  };
  const TestRegion live = MakeRegion(1, 64, kAll);
  const TestRegion dead = MakeRegion(1, 64, kAll);
  own.Fill(9);
  ASSERT_TRUE(fabric(1).Deregister(dead.key).ok());
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Deregister(dead.key)));
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Deregister(fabric::RegionKey())));
  for (const fabric::RegionKey key :
       {dead.key, fabric::RegionKey(), live.key + 1, own.key}) {
    for (const Attempt attempt : kAllOperations) {
      attempt_on(attempt, {key, 0}, 8, kRemoteAccess);
    }
  }
  EXPECT_TRUE(live.IsAll(0));
  EXPECT_TRUE(dead.IsAll(0));
}

// FB3: what was posted behind a failure is flushed, in order, and no other
// connection suffers.
TEST_P(FabricConformanceTest, FailureFlushesWhatIsBehindIt) {
  const TestLink link = Link(0, 1);
  const TestLink other = Link(0, 1);
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion remote = MakeRegion(1, 64, kWrite);
  own.Fill(1);
  ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(50), {}).ok());
  ASSERT_TRUE(fabric(0).PostReceive(link.at_host, WorkId(60), {}).ok());
  for (uint64_t i = 0; i < 6; ++i) {
    const RemoteAddress to = i == 2 ? remote.At(1) : remote.At(0);
    ASSERT_TRUE(
        fabric(0).PostWrite(link.at_host, WorkId(i), own.Local(), to).ok());
  }
  for (uint64_t i = 0; i < 6; ++i) {
    const fabric::Completion done = Next(0, link.at_host);
    EXPECT_EQ(done.work, WorkId(i));
    EXPECT_EQ(done.status, i < 2    ? CompletionStatus::kOk
                           : i == 2 ? CompletionStatus::kRemoteAccess
                                    : CompletionStatus::kFlushed);
  }
  EXPECT_EQ(NextReceive(0, link.at_host).status, CompletionStatus::kFlushed);
  EXPECT_EQ(NextReceive(1, link.at_peer).status, CompletionStatus::kFlushed);
  ExpectBrokenAtBothEnds(link);
  Settle();
  EXPECT_EQ(CompletionsOf(0, link.at_host), 0u);
  EXPECT_EQ(CompletionsOf(1, link.at_peer), 0u);
  ASSERT_TRUE(
      fabric(0)
          .PostWrite(other.at_host, WorkId(7), own.Local(), remote.At(0))
          .ok());
  EXPECT_EQ(Next(0, other.at_host).status, CompletionStatus::kOk);
}

// FB6, P-R1.
TEST_P(FabricConformanceTest, SenderFailsWhenTheReceiverIsNeverReady) {
  const TestRegion own = MakeRegion(0, 4096, kNone);
  const TestRegion remote = MakeRegion(1, 4096, kWrite);
  for (const bool is_send : {true, false}) {
    const TestLink link = Link(0, 1);
    const absl::Status posted =
        is_send ? fabric(0).PostSend(link.at_host, WorkId(1), own.Local())
                : fabric(0).PostWriteImmediate(link.at_host, WorkId(1),
                                               own.Local(), remote.At(0), 1);
    ASSERT_TRUE(posted.ok()) << posted;
    EXPECT_EQ(Next(0, link.at_host).status,
              CompletionStatus::kReceiverNotReady);
    ExpectBrokenAtBothEnds(link);
  }
}

TEST_P(FabricConformanceTest, SendThatIsTooLongFailsAtBothEnds) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion into = MakeRegion(1, 64, kNone);
  own.Fill(1);
  ASSERT_TRUE(
      fabric(1).PostReceive(link.at_peer, WorkId(1), into.Local(0, 63)).ok());
  ASSERT_TRUE(fabric(0).PostSend(link.at_host, WorkId(2), own.Local()).ok());
  EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kReceiveTooSmall);
  EXPECT_EQ(NextReceive(1, link.at_peer).status,
            CompletionStatus::kReceiveTooSmall);
  ExpectBrokenAtBothEnds(link);
  EXPECT_EQ(into.bytes[63], std::byte{0});
}

// FB5: a peer streams; what Close left is what stays.
TEST_P(FabricConformanceTest, CloseIsAFence) {
  const TestRegion own = MakeRegion(0, 8192, kNone);
  const TestRegion remote = MakeRegion(1, 8192, kWrite);
  own.Fill(1);
  for (int passes = 0; passes < 40; ++passes) {
    const TestLink link = Link(0, 1);
    for (uint64_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(
          fabric(0)
              .PostWrite(link.at_host, WorkId(i), own.Local(), remote.At(0))
              .ok());
    }
    for (int i = 0; i < passes; ++i) Pass();
    ASSERT_TRUE(fabric(1).Close(link.at_peer).ok());
    remote.Fill(2);
    Settle();
    ASSERT_TRUE(remote.IsAll(2)) << "after " << passes << " passes";
    ASSERT_TRUE(fabric(0).Close(link.at_host).ok());
  }
}

TEST_P(FabricConformanceTest, DeregisterIsAFence) {
  const TestRegion own = MakeRegion(0, 8192, kNone);
  own.Fill(1);
  for (int passes = 0; passes < 40; ++passes) {
    const TestLink link = Link(0, 1);
    const TestRegion remote = MakeRegion(1, 8192, kWrite);
    for (uint64_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(
          fabric(0)
              .PostWrite(link.at_host, WorkId(i), own.Local(), remote.At(0))
              .ok());
    }
    for (int i = 0; i < passes; ++i) Pass();
    ASSERT_TRUE(fabric(1).Deregister(remote.key).ok());
    remote.Fill(2);
    Settle();
    ASSERT_TRUE(remote.IsAll(2)) << "after " << passes << " passes";
    ASSERT_TRUE(fabric(0).Close(link.at_host).ok());
    ASSERT_TRUE(fabric(1).Close(link.at_peer).ok());
  }
}

// FB5 where the own operation is what changes this host's memory.
TEST_P(FabricConformanceTest, FencesHoldForOwnReadsAndReceivesToo) {
  const TestRegion source = MakeRegion(1, 4096, kRead);
  source.Fill(1);
  for (int passes = 0; passes < 20; ++passes) {
    for (const bool close : {true, false}) {
      const TestLink link = Link(0, 1);
      const TestRegion into = MakeRegion(0, 8192, kNone);
      ASSERT_TRUE(
          fabric(0)
              .PostReceive(link.at_host, WorkId(1), into.Local(4096, 4096))
              .ok());
      ASSERT_TRUE(fabric(0)
                      .PostRead(link.at_host, WorkId(2), into.Local(0, 4096),
                                source.At(0))
                      .ok());
      ASSERT_TRUE(
          fabric(1).PostSend(link.at_peer, WorkId(3), source.Local()).ok());
      for (int i = 0; i < passes; ++i) Pass();
      ASSERT_TRUE((close ? fabric(0).Close(link.at_host)
                         : fabric(0).Deregister(into.key))
                      .ok());
      into.Fill(2);
      Settle();
      ASSERT_TRUE(into.IsAll(2)) << "after " << passes << " passes";
    }
  }
}

TEST_P(FabricConformanceTest, OwnBytesMustBeRegistered) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion gone = MakeRegion(0, 64, kNone);
  const TestRegion remote = MakeRegion(1, 64, kAll);
  ASSERT_TRUE(fabric(0).Deregister(gone.key).ok());
  Fabric& mine = fabric(0);
  const fabric::LocalBytes too_long = {own.key, {own.bytes.data(), 65}};
  const fabric::LocalBytes too_early = {own.key, {own.bytes.data() - 1, 8}};
  for (const fabric::LocalBytes& bytes :
       {gone.Local(), too_long, too_early, remote.Local()}) {
    const ConnectionId id = link.at_host;
    const WorkId work(1);
    EXPECT_TRUE(
        absl::IsInvalidArgument(mine.PostWrite(id, work, bytes, remote.At(0))));
    EXPECT_TRUE(absl::IsInvalidArgument(
        mine.PostWriteImmediate(id, work, bytes, remote.At(0), 1)));
    EXPECT_TRUE(
        absl::IsInvalidArgument(mine.PostRead(id, work, bytes, remote.At(0))));
    EXPECT_TRUE(absl::IsInvalidArgument(mine.PostSend(id, work, bytes)));
    EXPECT_TRUE(absl::IsInvalidArgument(mine.PostReceive(id, work, bytes)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(mine.PostFetchAdd(
      link.at_host, WorkId(1), gone.Local(0, 8), remote.At(0), 1)));
  Settle();
  EXPECT_EQ(CompletionsOf(0, link.at_host), 0u) << "nothing was posted";
}

TEST_P(FabricConformanceTest, AtomicsAreAligned) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion remote = MakeRegion(1, 64, kAll);
  const auto invalid = [&](const fabric::LocalBytes& into, uint64_t offset) {
    const ConnectionId id = link.at_host;
    EXPECT_TRUE(absl::IsInvalidArgument(fabric(0).PostCompareSwap(
        id, WorkId(1), into, remote.At(offset), 0, 0)));
    EXPECT_TRUE(absl::IsInvalidArgument(
        fabric(0).PostFetchAdd(id, WorkId(1), into, remote.At(offset), 0)));
  };
  for (uint64_t offset = 1; offset < 8; ++offset) {
    invalid(own.Local(0, 8), offset);
  }
  invalid(own.Local(0, 7), 0);
  invalid(own.Local(0, 16), 0);
  invalid({}, 0);
}

TEST_P(FabricConformanceTest, RegistrationsAreChecked) {
  const TestRegion region = MakeRegion(0, 64, kNone);
  EXPECT_TRUE(absl::IsInvalidArgument(fabric(0).Register({}, kRead).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      fabric(0).Register(region.bytes.subspan(4), kAll).status()));
}

TEST_P(FabricConformanceTest, QueuesHaveTheirLimits) {
  const Fabric::Limits limits = fabric(0).limits();
  const TestLink link = Link(0, 1);
  for (uint32_t i = 0; i < limits.receives_max; ++i) {
    ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(i), {}).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(
      fabric(1).PostReceive(link.at_peer, WorkId(0), {})));
  uint32_t sent = 0;
  for (; sent < limits.sends_max && sent < limits.receives_max; ++sent) {
    ASSERT_TRUE(fabric(0).PostSend(link.at_host, WorkId(sent), {}).ok());
  }
  for (uint32_t more = sent; more < limits.sends_max; ++more) {
    ASSERT_TRUE(fabric(0).PostWrite(link.at_host, WorkId(more), {}, {}).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(
      fabric(0).PostSend(link.at_host, WorkId(0), {})));
  for (uint32_t i = 0; i < limits.sends_max; ++i) {
    EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kOk);
  }
  for (uint32_t i = 0; i < sent; ++i) {
    EXPECT_EQ(NextReceive(1, link.at_peer).work, WorkId(i));
  }
  EXPECT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(0), {}).ok());
  EXPECT_TRUE(fabric(0).PostSend(link.at_host, WorkId(0), {}).ok());
}

TEST_P(FabricConformanceTest, MessagesHaveALongestLength) {
  const uint64_t bytes = fabric(0).limits().message_bytes_max;
  if (bytes > (64u << 20)) {
    GTEST_SKIP() << "skipped because messages may have " << bytes << " bytes";
  }
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, bytes + 1, kNone);
  const TestRegion remote = MakeRegion(1, bytes + 1, kReadWrite);
  own.Fill(3);
  Fabric& mine = fabric(0);
  const ConnectionId id = link.at_host;
  EXPECT_TRUE(absl::IsInvalidArgument(
      mine.PostWrite(id, WorkId(1), own.Local(), remote.At(0))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      mine.PostRead(id, WorkId(1), own.Local(), remote.At(0))));
  EXPECT_TRUE(
      absl::IsInvalidArgument(mine.PostSend(id, WorkId(1), own.Local())));
  ASSERT_TRUE(
      mine.PostWrite(id, WorkId(1), own.Local(0, bytes), remote.At(1)).ok());
  EXPECT_EQ(Next(0, id).status, CompletionStatus::kOk);
  EXPECT_TRUE(BecomesVisible(
      [&] { return TestRegion{remote.bytes.subspan(1, bytes), {}}.IsAll(3); }));
  EXPECT_EQ(remote.bytes[0], std::byte{0});
}

TEST_P(FabricConformanceTest, PeerBehindACutLinkIsGone) {
  const TestLink link = Link(0, 1);
  const TestLink other = Link(0, 2);
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion remote = MakeRegion(1, 64, kWrite);
  const TestRegion third = MakeRegion(2, 64, kWrite);
  world_->Cut(0, 1);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(link.at_host, WorkId(i), own.Local(), remote.At(0))
            .ok());
  }
  ASSERT_TRUE(fabric(0)
                  .PostWrite(other.at_host, WorkId(9), own.Local(), third.At(0))
                  .ok());
  EXPECT_EQ(Next(0, other.at_host).status, CompletionStatus::kOk);
  EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kPeerGone);
  EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kFlushed);
  EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kFlushed);
  EXPECT_TRUE(
      Until([&] { return HasEvent(0, Kind::kDisconnected, link.at_host); }));
  world_->Heal(0, 1);
  // The peer is told, or finds out by what it posts.
  (void)fabric(1).PostWrite(link.at_peer, WorkId(1), {}, {});
  EXPECT_TRUE(
      Until([&] { return HasEvent(1, Kind::kDisconnected, link.at_peer); }));
  const TestLink again = Link(0, 1);
  ASSERT_TRUE(
      fabric(0)
          .PostWrite(again.at_host, WorkId(1), own.Local(), remote.At(0))
          .ok());
  EXPECT_EQ(Next(0, again.at_host).status, CompletionStatus::kOk);
}

TEST_P(FabricConformanceTest, LinkThatIsHealedInTimeLosesNothing) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 64, kNone);
  const TestRegion remote = MakeRegion(1, 8 * 64, kWrite);
  own.Fill(6);
  world_->Cut(0, 1);
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(link.at_host, WorkId(i), own.Local(), remote.At(64 * i))
            .ok());
  }
  for (int i = 0; i < 12; ++i) Pass();
  world_->Heal(0, 1);
  for (uint64_t i = 0; i < 8; ++i) {
    const fabric::Completion done = Next(0, link.at_host);
    EXPECT_EQ(done.work, WorkId(i));
    EXPECT_EQ(done.status, CompletionStatus::kOk);
  }
  EXPECT_TRUE(BecomesVisible([&] { return remote.IsAll(6); }));
}

}  // namespace
}  // namespace alpheus::testing
