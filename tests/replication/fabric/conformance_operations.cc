// SPDX-License-Identifier: Apache-2.0
// Operations when nothing goes wrong: FB1, FB2, FB3, FB7.
#include <algorithm>
#include <cstring>
#include <set>

#include "tests/replication/fabric/conformance.h"

namespace alpheus::testing {

using fabric::Completion;
using fabric::Operation;
using fabric::WorkId;

namespace {

using enum fabric::RemoteAccess;
constexpr auto kOk = fabric::CompletionStatus::kOk;

// FB8, for every size and place: nothing more needs to be done.
TEST_P(FabricConformanceTest, CompletedWriteIsVisible) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 20'000, kNone);
  const TestRegion remote = MakeRegion(1, 20'000, kWrite);
  int value = 1;
  for (const uint64_t bytes : {1, 7, 8, 9, 64, 1023, 4096, 10'001}) {
    for (const uint64_t offset : {0, 1, 8, 4093}) {
      own.Fill(value);
      remote.Fill(0);
      ASSERT_TRUE(fabric(0)
                      .PostWrite(link.at_host, WorkId(value),
                                 own.Local(3, bytes), remote.At(offset))
                      .ok());
      const Completion done = Next(0, link.at_host);
      EXPECT_EQ(done.work, WorkId(value));
      EXPECT_EQ(done.operation, Operation::kWrite);
      EXPECT_EQ(done.status, kOk);
      EXPECT_TRUE(BecomesVisible([&] {
        return std::count(remote.bytes.begin(), remote.bytes.end(),
                          static_cast<std::byte>(value)) ==
               static_cast<ptrdiff_t>(bytes);
      }));
      for (uint64_t i = 0; i < remote.bytes.size(); ++i) {
        const bool written = i >= offset && i < offset + bytes;
        ASSERT_EQ(remote.bytes[i], static_cast<std::byte>(written ? value : 0))
            << bytes << " bytes at " << offset << ": byte " << i;
      }
      ++value;
    }
  }
}

// FB2, and what the receive tells: byte count and immediate.
TEST_P(FabricConformanceTest, ImmediateComesBehindAllWritesBeforeIt) {
  const TestLink link = Link(0, 1);
  constexpr uint64_t kBytes = 8192;
  const TestRegion own = MakeRegion(0, kBytes, kNone);
  const TestRegion remote = MakeRegion(1, 4 * kBytes, kReadWrite);
  own.Fill(7);
  for (uint32_t round = 0; round < 8; ++round) {
    remote.Fill(0);
    ASSERT_TRUE(
        fabric(1).PostReceive(link.at_peer, WorkId(100 + round), {}).ok());
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(fabric(0)
                      .PostWrite(link.at_host, WorkId(i), own.Local(),
                                 remote.At(i * kBytes))
                      .ok());
    }
    ASSERT_TRUE(fabric(0)
                    .PostWriteImmediate(link.at_host, WorkId(3), own.Local(),
                                        remote.At(3 * kBytes),
                                        0xfffffff0u + round)
                    .ok());
    const Completion received = NextReceive(1, link.at_peer);
    EXPECT_TRUE(remote.IsAll(7));
    EXPECT_EQ(received.work, WorkId(100 + round));
    EXPECT_EQ(received.operation, Operation::kReceiveImmediate);
    EXPECT_EQ(received.status, kOk);
    EXPECT_EQ(received.bytes, kBytes);
    EXPECT_EQ(received.immediate, 0xfffffff0u + round);
    for (uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(Next(0, link.at_host).work, WorkId(i));
    }
  }
}

// P-R9: an immediate of no bytes needs no key, and no buffer.
TEST_P(FabricConformanceTest, ZeroLengthWriteWithImmediateOnlyAnnounces) {
  const TestLink link = Link(0, 1);
  ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(1), {}).ok());
  ASSERT_TRUE(fabric(0)
                  .PostWriteImmediate(link.at_host, WorkId(2), {},
                                      {fabric::RegionKey(), 77}, 42)
                  .ok());
  EXPECT_EQ(Next(0, link.at_host).status, kOk);
  const Completion received = NextReceive(1, link.at_peer);
  EXPECT_EQ(received.operation, Operation::kReceiveImmediate);
  EXPECT_EQ(received.bytes, 0u);
  EXPECT_EQ(received.immediate, 42u);
}

// FB1: reads and flushes see what was posted before them, writes that were
// posted behind a read do not get into it.
TEST_P(FabricConformanceTest, ReadSeesWritesBeforeItAndNoneBehindIt) {
  const TestLink link = Link(0, 1);
  constexpr uint64_t kBytes = 6000;
  const TestRegion before = MakeRegion(0, kBytes, kNone);
  const TestRegion behind = MakeRegion(0, kBytes, kNone);
  const TestRegion into = MakeRegion(0, kBytes, kNone);
  const TestRegion remote = MakeRegion(1, kBytes, kReadWrite);
  before.Fill(1);
  behind.Fill(2);
  fabric::Fabric& own = fabric(0);
  ASSERT_TRUE(
      own.PostWrite(link.at_host, WorkId(1), before.Local(), remote.At(0))
          .ok());
  ASSERT_TRUE(
      own.PostRead(link.at_host, WorkId(2), into.Local(), remote.At(0)).ok());
  ASSERT_TRUE(
      own.PostWrite(link.at_host, WorkId(3), behind.Local(), remote.At(0))
          .ok());
  ASSERT_TRUE(
      own.PostFlush(link.at_host, WorkId(4), remote.At(0), kBytes).ok());
  for (uint64_t i = 1; i <= 4; ++i) {
    const Completion done = Next(0, link.at_host);
    EXPECT_EQ(done.work, WorkId(i));
    EXPECT_EQ(done.status, kOk);
    EXPECT_TRUE(i < 2 || into.IsAll(1));
  }
  EXPECT_TRUE(remote.IsAll(2));
}

// FB8: a flush, a read and an atomic say that what was posted before is
// visible, also where it completed long ago.
TEST_P(FabricConformanceTest, WhatComesBehindAWriteFindsItVisible) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 6000, kNone);
  const TestRegion into = MakeRegion(0, 8, kNone);
  const TestRegion remote = MakeRegion(1, 6000, kAll);
  const std::function<absl::Status()> behind[] = {
      [&] {
        return fabric(0).PostFlush(link.at_host, WorkId(2), remote.At(5999), 1);
      },
      [&] {
        return fabric(0).PostRead(link.at_host, WorkId(2), into.Local(),
                                  remote.At(8));
      },
      [&] {
        return fabric(0).PostFetchAdd(link.at_host, WorkId(2), into.Local(),
                                      remote.At(16), 0);
      }};
  int value = 1;
  for (const auto& post : behind) {
    for (const bool at_once : {true, false}) {
      own.Fill(++value);
      ASSERT_TRUE(
          fabric(0)
              .PostWrite(link.at_host, WorkId(1), own.Local(), remote.At(0))
              .ok());
      const auto post_behind = [&] { ASSERT_TRUE(post().ok()); };
      if (at_once) post_behind();
      EXPECT_EQ(Next(0, link.at_host).work, WorkId(1));
      if (!at_once) post_behind();
      EXPECT_EQ(Next(0, link.at_host).work, WorkId(2));
      EXPECT_TRUE(remote.IsAll(value));
    }
  }
}

// FB8: also when the region is given back, or the connection closed.
TEST_P(FabricConformanceTest, CompletedWriteLandsBeforeTheFence) {
  const TestRegion own = MakeRegion(0, 4096, kNone);
  own.Fill(1);
  for (const bool close : {true, false}) {
    const TestLink link = Link(0, 1);
    const TestRegion remote = MakeRegion(1, 4096, kWrite);
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(link.at_host, WorkId(1), own.Local(), remote.At(0))
            .ok());
    EXPECT_EQ(Next(0, link.at_host).status, kOk);
    ASSERT_TRUE((close ? fabric(1).Close(link.at_peer)
                       : fabric(1).Deregister(remote.key))
                    .ok());
    EXPECT_TRUE(remote.IsAll(1));
  }
}

TEST_P(FabricConformanceTest, FlushOfNoBytesIsBehindTheWritesToo) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 4096, kNone);
  const TestRegion remote = MakeRegion(1, 4096, kReadWrite);
  own.Fill(3);
  ASSERT_TRUE(fabric(0)
                  .PostWrite(link.at_host, WorkId(1), own.Local(), remote.At(0))
                  .ok());
  ASSERT_TRUE(
      fabric(0).PostFlush(link.at_host, WorkId(2), remote.At(0), 0).ok());
  EXPECT_EQ(Next(0, link.at_host).work, WorkId(1));
  const Completion done = Next(0, link.at_host);
  EXPECT_EQ(done.operation, Operation::kFlush);
  EXPECT_EQ(done.status, kOk);
  EXPECT_TRUE(remote.IsAll(3));
}

// PostWriteAtomic, FB1: what was written before is there before the word is,
// and what is written behind it does not pass it.
TEST_P(FabricConformanceTest, AtomicWriteTakesEffectInItsOrder) {
  const TestLink link = Link(0, 1);
  constexpr uint64_t kBytes = 4096;
  const TestRegion own = MakeRegion(0, kBytes, kNone);
  const TestRegion remote = MakeRegion(1, kBytes + 8, kReadWrite);
  const fabric::LocalBytes word = own.Local(0, 8);
  const auto write_atomic = [&](uint64_t work) {
    return fabric(0).PostWriteAtomic(link.at_host, WorkId(work), word,
                                     remote.At(kBytes));
  };
  if (!fabric(0).limits().atomic_write) {
    EXPECT_TRUE(absl::IsUnimplemented(write_atomic(1)));
    return;
  }
  for (int value = 1; value <= 20; ++value) {
    own.Fill(value);
    const fabric::RemoteAddress bytes = remote.At(0);
    ASSERT_TRUE(
        fabric(0).PostWrite(link.at_host, WorkId(1), own.Local(), bytes).ok());
    ASSERT_TRUE(
        fabric(0).PostFlush(link.at_host, WorkId(2), bytes, kBytes).ok());
    ASSERT_TRUE(write_atomic(3).ok());
    ASSERT_TRUE(fabric(0)
                    .PostFlush(link.at_host, WorkId(4), remote.At(kBytes), 8)
                    .ok());
    ASSERT_TRUE(Until([&] { return remote.Word(kBytes) == own.Word(0); }));
    EXPECT_EQ(std::ranges::count(remote.bytes, std::byte{own.bytes[0]}),
              static_cast<ptrdiff_t>(kBytes + 8));
    for (const uint64_t work : {1, 2, 3, 4}) {
      const Completion done = Next(0, link.at_host);
      EXPECT_EQ(done.work, WorkId(work));
      EXPECT_EQ(done.status, kOk);
      EXPECT_EQ(done.operation,
                work % 2 == 0 ? Operation::kFlush : Operation::kWrite);
    }
  }
  own.Fill(7);
  ASSERT_TRUE(write_atomic(5).ok());
  ASSERT_TRUE(fabric(0)
                  .PostWrite(link.at_host, WorkId(6), own.Local(8, 4),
                             remote.At(kBytes + 4))
                  .ok());
  ASSERT_TRUE(
      fabric(0).PostFlush(link.at_host, WorkId(7), remote.At(0), 8).ok());
  for (const uint64_t work : {5, 6, 7}) {
    EXPECT_EQ(Next(0, link.at_host).work, WorkId(work));
  }
  EXPECT_EQ(remote.Word(kBytes), own.Word(0));
}

// The same, in one chain with each other operation.
TEST_P(FabricConformanceTest, AtomicWriteGoesWithAllOtherOperations) {
  if (!fabric(0).limits().atomic_write) return;
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 512, kWrite);
  const TestRegion remote = MakeRegion(1, 512, kAll);
  const TestRegion receives = MakeRegion(1, 64, kNone);
  own.Fill(3);
  remote.SetWord(64, 10);
  fabric::Fabric& to = fabric(0);
  const fabric::ConnectionId id = link.at_host;
  ASSERT_TRUE(
      fabric(1).PostReceive(link.at_peer, WorkId(1), receives.Local()).ok());
  ASSERT_TRUE(
      fabric(1).PostReceive(link.at_peer, WorkId(2), receives.Local()).ok());
  ASSERT_TRUE(
      to.PostWriteAtomic(id, WorkId(1), own.Local(0, 8), remote.At(0)).ok());
  ASSERT_TRUE(to.PostWrite(id, WorkId(2), own.Local(0, 8), remote.At(8)).ok());
  ASSERT_TRUE(
      to.PostWrite(id, WorkId(3), own.Local(0, 300), remote.At(128)).ok());
  ASSERT_TRUE(
      to.PostWriteImmediate(id, WorkId(4), own.Local(0, 8), remote.At(16), 5)
          .ok());
  ASSERT_TRUE(to.PostSend(id, WorkId(5), own.Local(0, 40)).ok());
  ASSERT_TRUE(
      to.PostRead(id, WorkId(6), own.Local(320, 32), remote.At(64)).ok());
  ASSERT_TRUE(
      to.PostFetchAdd(id, WorkId(7), own.Local(352, 8), remote.At(64), 5).ok());
  ASSERT_TRUE(to.PostCompareSwap(id, WorkId(8), own.Local(360, 8),
                                 remote.At(64), 15, 99)
                  .ok());
  ASSERT_TRUE(to.PostWrite(id, WorkId(9), {}, {}).ok());
  ASSERT_TRUE(to.PostFlush(id, WorkId(10), remote.At(0), 512).ok());
  for (uint64_t work = 1; work <= 10; ++work) {
    const Completion done = Next(0, id);
    EXPECT_EQ(done.work, WorkId(work));
    EXPECT_EQ(done.status, kOk) << "work " << work;
  }
  EXPECT_EQ(NextReceive(1, link.at_peer).immediate, 5u);
  EXPECT_EQ(NextReceive(1, link.at_peer).bytes, 40u);
  EXPECT_EQ(remote.Word(0), own.Word(0));
  EXPECT_EQ(remote.Word(8), own.Word(0));
  EXPECT_EQ(remote.Word(16), own.Word(0));
  EXPECT_EQ(remote.Word(420), own.Word(0));
  EXPECT_EQ(receives.Word(32), own.Word(0));
  EXPECT_EQ(own.Word(320), 10u) << "the read";
  EXPECT_EQ(own.Word(352), 10u) << "the word that was added to";
  EXPECT_EQ(own.Word(360), 15u) << "the word that was swapped";
  EXPECT_EQ(remote.Word(64), 99u);
}

TEST_P(FabricConformanceTest, CompareSwapSwapsOnlyWhatItExpected) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 8, kNone);
  const TestRegion remote = MakeRegion(1, 24, kAll);
  remote.SetWord(8, 5);
  const auto swap = [&](uint64_t expected, uint64_t desired) {
    EXPECT_TRUE(fabric(0)
                    .PostCompareSwap(link.at_host, WorkId(1), own.Local(),
                                     remote.At(8), expected, desired)
                    .ok());
    const Completion done = Next(0, link.at_host);
    EXPECT_EQ(done.operation, Operation::kCompareSwap);
    EXPECT_EQ(done.status, kOk);
    return own.Word(0);
  };
  EXPECT_EQ(swap(4, 9), 5u);
  EXPECT_EQ(remote.Word(8), 5u);
  EXPECT_EQ(swap(5, ~uint64_t{0}), 5u);
  EXPECT_EQ(remote.Word(8), ~uint64_t{0});
  EXPECT_EQ(swap(~uint64_t{0}, 1), ~uint64_t{0});
  EXPECT_EQ(remote.Word(8), 1u);
  EXPECT_EQ(remote.Word(0) | remote.Word(16), 0u);
}

// Two requesters add to one word: no sum is lost, no value seen twice.
TEST_P(FabricConformanceTest, FetchAddsOfTwoHostsAreAtomic) {
  const TestLink links[] = {Link(0, 2), Link(1, 2)};
  const TestRegion remote = MakeRegion(2, 8, kAll);
  const TestRegion own[] = {MakeRegion(0, 8 * 32, kNone),
                            MakeRegion(1, 8 * 32, kNone)};
  for (uint64_t i = 0; i < 32; ++i) {
    for (const TestLink& link : links) {
      ASSERT_TRUE(fabric(link.host)
                      .PostFetchAdd(link.at_host, WorkId(i),
                                    own[link.host].Local(8 * i, 8),
                                    remote.At(0), 3)
                      .ok());
    }
  }
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 32; ++i) {
    for (const TestLink& link : links) {
      const Completion done = Next(link.host, link.at_host);
      EXPECT_EQ(done.operation, Operation::kFetchAdd);
      EXPECT_EQ(done.status, kOk);
      seen.insert(own[link.host].Word(8 * i));
    }
  }
  EXPECT_EQ(seen.size(), 64u);
  EXPECT_EQ(*seen.begin(), 0u);
  EXPECT_EQ(*seen.rbegin(), 3u * 63);
  EXPECT_EQ(remote.Word(0), 3u * 64);
}

TEST_P(FabricConformanceTest, SendsFillReceivesInOrder) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 5000, kNone);
  const TestRegion into = MakeRegion(1, 4 * 5000, kNone);
  const uint64_t sizes[] = {1, 0, 5000, 17};
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(fabric(1)
                    .PostReceive(link.at_peer, WorkId(10 + i),
                                 into.Local(i * 5000, 5000))
                    .ok());
  }
  own.Fill(9);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(fabric(0)
                    .PostSend(link.at_host, WorkId(i), own.Local(0, sizes[i]))
                    .ok());
  }
  for (uint64_t i = 0; i < 4; ++i) {
    const Completion received = NextReceive(1, link.at_peer);
    EXPECT_EQ(received.work, WorkId(10 + i));
    EXPECT_EQ(received.operation, Operation::kReceive);
    EXPECT_EQ(received.status, kOk);
    EXPECT_EQ(received.bytes, sizes[i]);
    for (uint64_t b = 0; b < 5000; ++b) {
      ASSERT_EQ(into.bytes[i * 5000 + b],
                static_cast<std::byte>(b < sizes[i] ? 9 : 0));
    }
    const Completion sent = Next(0, link.at_host);
    EXPECT_EQ(sent.work, WorkId(i));
    EXPECT_EQ(sent.operation, Operation::kSend);
    EXPECT_EQ(sent.status, kOk);
  }
}

// Sends and immediates use up the same receives, in the order of posting.
TEST_P(FabricConformanceTest, SendsAndImmediatesShareTheReceives) {
  const TestLink link = Link(0, 1);
  const TestRegion into = MakeRegion(1, 16, kNone);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(
        fabric(1).PostReceive(link.at_peer, WorkId(i), into.Local()).ok());
  }
  for (uint64_t i = 0; i < 4; ++i) {
    const absl::Status posted =
        i % 2 == 0
            ? fabric(0).PostSend(link.at_host, WorkId(i), {})
            : fabric(0).PostWriteImmediate(link.at_host, WorkId(i), {}, {}, 7);
    ASSERT_TRUE(posted.ok()) << posted;
  }
  for (uint64_t i = 0; i < 4; ++i) {
    const Completion received = NextReceive(1, link.at_peer);
    EXPECT_EQ(received.work, WorkId(i));
    EXPECT_EQ(received.operation,
              i % 2 == 0 ? Operation::kReceive : Operation::kReceiveImmediate);
  }
}

// FB3 with both directions, and several connections, in use at once.
TEST_P(FabricConformanceTest, ManyConnectionsBothWaysKeepTheirOwnOrder) {
  constexpr uint64_t kWrites = 10;
  std::vector<TestLink> links;
  for (int i = 0; i < 4; ++i) links.push_back(Link(i % 2, 1 - i % 2));
  const TestRegion regions[] = {MakeRegion(0, 8 * 64, kReadWrite),
                                MakeRegion(1, 8 * 64, kReadWrite)};
  const TestRegion own[] = {MakeRegion(0, 8 * kWrites, kNone),
                            MakeRegion(1, 8 * kWrites, kNone)};
  for (uint64_t i = 0; i < kWrites; ++i) {
    own[0].SetWord(8 * i, i + 1);
    own[1].SetWord(8 * i, i + 1);
  }
  for (uint64_t i = 0; i < kWrites; ++i) {
    for (uint64_t n = 0; n < links.size(); ++n) {
      const TestLink& link = links[n];
      const fabric::LocalBytes from = own[link.host].Local(8 * i, 8);
      ASSERT_TRUE(fabric(link.host)
                      .PostWrite(link.at_host, WorkId(i), from,
                                 regions[link.peer].At(8 * n))
                      .ok());
      ASSERT_TRUE(fabric(link.peer)
                      .PostWrite(link.at_peer, WorkId(i),
                                 own[link.peer].Local(8 * i, 8),
                                 regions[link.host].At(8 * (n + 8)))
                      .ok());
    }
  }
  for (uint64_t i = 0; i < kWrites; ++i) {
    for (const TestLink& link : links) {
      EXPECT_EQ(Next(link.host, link.at_host).work, WorkId(i));
      EXPECT_EQ(Next(link.peer, link.at_peer).work, WorkId(i));
    }
  }
  for (uint64_t n = 0; n < links.size(); ++n) {
    EXPECT_TRUE(BecomesVisible([&] {
      return regions[links[n].peer].Word(8 * n) == kWrites &&
             regions[links[n].host].Word(8 * (n + 8)) == kWrites;
    })) << n;
  }
}

TEST_P(FabricConformanceTest, ThreeHostsReachEachOther) {
  for (int host = 0; host < 3; ++host) {
    const int peer = (host + 1) % 3;
    const TestLink link = Link(host, peer);
    const TestRegion own = MakeRegion(host, 8, kNone);
    const TestRegion remote = MakeRegion(peer, 8, kWrite);
    own.SetWord(0, 40 + host);
    ASSERT_TRUE(
        fabric(host)
            .PostWrite(link.at_host, WorkId(1), own.Local(), remote.At(0))
            .ok());
    EXPECT_EQ(Next(host, link.at_host).status, kOk);
    EXPECT_TRUE(BecomesVisible([&] { return remote.Word(0) == 40u + host; }));
  }
}

// FB7.
TEST_P(FabricConformanceTest, KeysAndConnectionsAreNeverUsedTwice) {
  std::set<fabric::RegionKey> keys;
  std::set<fabric::ConnectionId> at_host;
  std::set<fabric::ConnectionId> at_peer;
  for (int i = 0; i < 20; ++i) {
    const TestRegion region = MakeRegion(0, 8, kRead);
    EXPECT_NE(region.key, fabric::RegionKey());
    EXPECT_TRUE(keys.insert(region.key).second);
    EXPECT_TRUE(fabric(0).Deregister(region.key).ok());
    const TestLink link = Link(0, 1);
    EXPECT_NE(link.at_host, fabric::ConnectionId());
    EXPECT_TRUE(at_host.insert(link.at_host).second);
    EXPECT_TRUE(at_peer.insert(link.at_peer).second);
    EXPECT_TRUE(fabric(0).Close(link.at_host).ok());
    EXPECT_TRUE(fabric(1).Close(link.at_peer).ok());
  }
}

// Poll takes no more than fits, and loses nothing of the rest.
TEST_P(FabricConformanceTest, PollTakesWhatFits) {
  const TestLink link = Link(0, 1);
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(i), {}).ok());
  }
  ASSERT_TRUE(fabric(1).Close(link.at_peer).ok());
  uint64_t taken = 0;
  const int64_t end = world_->NowNanos() + kWaitNanos;
  while (taken < 5 && world_->NowNanos() < end) {
    Completion two[2];
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric(1).Poll(two, &events);
    ASSERT_LE(count, 2u);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(two[i].work, WorkId(taken++));
    if (count == 0 && !world_->Pass()) break;
  }
  EXPECT_EQ(taken, 5u);
}

}  // namespace
}  // namespace alpheus::testing
