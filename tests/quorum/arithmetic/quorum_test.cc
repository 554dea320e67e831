// SPDX-License-Identifier: Apache-2.0
// Exhaustive for N <= 5 and every W and R that is allowed. The second opinion
// knows no thresholds: it enumerates sets of replicas, as bits of a mask, and
// asks what the words of the protocol ask.
#include "quorum/arithmetic/quorum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "log/base/random.h"
#include "log/format/superline.h"

namespace alpheus::quorum {
namespace {

using Mask = uint32_t;

constexpr uint32_t kCountMax = 5;

std::vector<Mask> SetsOf(uint32_t n, uint32_t size) {
  std::vector<Mask> sets;
  for (Mask set = 0; set < (Mask{1} << n); ++set) {
    if (static_cast<uint32_t>(std::popcount(set)) == size) sets.push_back(set);
  }
  return sets;
}

bool AllMeet(const std::vector<Mask>& a, const std::vector<Mask>& b) {
  return std::all_of(a.begin(), a.end(), [&b](Mask x) {
    return std::all_of(b.begin(), b.end(), [x](Mask y) { return x & y; });
  });
}

// Every (N, W, R) whose quorums meet, by sets.
std::vector<QuorumSizes> AllSizes() {
  std::vector<QuorumSizes> all;
  for (uint32_t n = 1; n <= kCountMax; ++n) {
    for (uint32_t w = 1; w <= n; ++w) {
      for (uint32_t r = 1; r <= n; ++r) {
        if (AllMeet(SetsOf(n, w), SetsOf(n, r))) all.push_back({n, w, r});
      }
    }
  }
  return all;
}

std::string Name(const QuorumSizes& sizes) {
  return "N=" + std::to_string(sizes.replica_count) +
         " W=" + std::to_string(sizes.write_quorum) +
         " R=" + std::to_string(sizes.read_quorum);
}

// QU1 (quorum.h), both ways: refused sizes have quorums that do not meet.
TEST(QuorumTest, SizesAreRefusedUnlessQuorumsMeet) {
  for (uint32_t n = 1; n <= kCountMax; ++n) {
    for (uint32_t w = 1; w <= n; ++w) {
      for (uint32_t r = 1; r <= n; ++r) {
        SCOPED_TRACE(Name({n, w, r}));
        const auto sizes = MakeQuorumSizes(n, w, r);
        ASSERT_EQ(sizes.ok(), AllMeet(SetsOf(n, w), SetsOf(n, r)));
        if (sizes.ok()) {
          EXPECT_EQ(*sizes, (QuorumSizes{n, w, r}));
        } else {
          EXPECT_EQ(sizes.status().code(), absl::StatusCode::kInvalidArgument);
        }
      }
    }
  }
}

// The defaults: majorities for writing, the least that meets them for reading.
TEST(QuorumTest, DefaultsAreTheLeastThatMeet) {
  for (uint32_t n = 1; n <= kMembersMax; ++n) {
    const auto sizes = MakeQuorumSizes(n);
    ASSERT_TRUE(sizes.ok()) << sizes.status();
    EXPECT_GT(2 * sizes->write_quorum, n);
    EXPECT_LE(2 * (sizes->write_quorum - 1), n);
    for (uint32_t w = 1; w <= n; ++w) {
      const auto given = MakeQuorumSizes(n, w);
      ASSERT_TRUE(given.ok()) << given.status();
      EXPECT_FALSE(MakeQuorumSizes(n, w, given->read_quorum - 1).ok());
    }
  }
}

TEST(QuorumTest, RefusalsTellWhatIsNeeded) {
  const struct {
    uint32_t n;
    std::optional<uint32_t> w, r;
    const char* message;
  } cases[] = {
      {0, {}, {}, "N = 0 replicas; a log has 1 to 16 of them"},
      {17, {}, {}, "N = 17 replicas; a log has 1 to 16 of them"},
      {3, 0, {}, "write_quorum W = 0 of N = 3 replicas; it must be 1 to N"},
      {3, 4, {}, "write_quorum W = 4 of N = 3 replicas; it must be 1 to N"},
      {3, {}, 0, "read_quorum R = 0 of N = 3 replicas; it must be 1 to N"},
      {3, {}, 4, "read_quorum R = 4 of N = 3 replicas; it must be 1 to N"},
      {5, 2, 3, "raise read_quorum to at least 4"},
      {3, UINT32_MAX, UINT32_MAX, "write_quorum W = 4294967295"},
  };
  for (const auto& c : cases) {
    const absl::Status status = MakeQuorumSizes(c.n, c.w, c.r).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(c.message), absl::string_view::npos)
        << status;
  }
}

// By sets: the largest LSN that all of some W replicas in sync persisted.
std::optional<Lsn> NaiveDurable(const std::vector<ReplicaProgress>& replicas,
                                uint32_t w) {
  std::optional<Lsn> durable;
  for (const Mask set : SetsOf(static_cast<uint32_t>(replicas.size()), w)) {
    Lsn all(UINT64_MAX);
    bool in_sync = true;
    for (size_t i = 0; i < replicas.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      in_sync &= replicas[i].in_sync;
      all = std::min(all, replicas[i].persisted_lsn);
    }
    if (in_sync) durable = std::max(durable.value_or(Lsn(0)), all);
  }
  return durable;
}

// QU2 (quorum.h), P-A3.3, P-A3.6. Each replica is out of sync with much
// persisted, or in sync at one of three LSNs. No two of the three need differ
// by one: only their order matters.
TEST(QuorumTest, DurableIsWhatSomeWInSyncAllPersisted) {
  const ReplicaProgress states[] = {
      {Lsn(9), false}, {Lsn(0), true}, {Lsn(4), true}, {Lsn(7), true}};
  for (uint32_t n = 1; n <= kCountMax; ++n) {
    for (uint32_t code = 0; code < 1u << (2 * n); ++code) {
      std::vector<ReplicaProgress> replicas;
      for (uint32_t i = 0; i < n; ++i) {
        replicas.push_back(states[code >> (2 * i) & 3]);
      }
      for (uint32_t w = 1; w <= n; ++w) {
        ASSERT_EQ(DurableLsn(replicas, w), NaiveDurable(replicas, w))
            << "N=" << n << " W=" << w << " code " << code;
      }
    }
  }
}

// All sixteen, in random orders: the W-th largest.
TEST(QuorumTest, SixteenReplicasHaveAWthLargest) {
  constexpr uint64_t kSeed = 20220623;
  Random random(kSeed);
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " +
                 std::to_string(round));
    std::vector<ReplicaProgress> replicas(kMembersMax);
    std::vector<Lsn> sorted;
    for (ReplicaProgress& replica : replicas) {
      replica = {Lsn(random.Below(20)), true};
      sorted.push_back(replica.persisted_lsn);
    }
    std::sort(sorted.rbegin(), sorted.rend());
    for (uint32_t w = 1; w <= kMembersMax; ++w) {
      ASSERT_EQ(DurableLsn(replicas, w), sorted[w - 1]);
    }
  }
}

TEST(QuorumTest, NobodyInSyncIsPoisonedNotZero) {
  EXPECT_EQ(DurableLsn({}, 1), std::nullopt);
  const ReplicaProgress blank[] = {{Lsn(0), true}};
  EXPECT_EQ(DurableLsn(blank, 1), Lsn(0));
}

// All reports that N replicas can give about one LSN.
std::vector<ReportCounts> AllReports(uint32_t n) {
  std::vector<ReportCounts> all;
  for (uint32_t have = 0; have <= n; ++have) {
    for (uint32_t nack = 0; have + nack <= n; ++nack) {
      for (uint32_t unknown = 0; have + nack + unknown <= n; ++unknown) {
        all.push_back({have, nack, unknown});
      }
    }
  }
  return all;
}

// In some world, W replicas hold the record: a world gives it to a set of
// replicas that has every holder and nobody who nacked. Holders are the lowest
// bits, then those who nacked, then all that may or may not.
bool IsDurableInSomeWorld(const QuorumSizes& sizes,
                          const ReportCounts& reports) {
  const Mask holders = (Mask{1} << reports.have) - 1;
  const Mask nacks = ((Mask{1} << reports.nack) - 1) << reports.have;
  for (Mask world = 0; world < (Mask{1} << sizes.replica_count); ++world) {
    if ((world & holders) != holders || (world & nacks) != 0) continue;
    if (static_cast<uint32_t>(std::popcount(world)) >= sizes.write_quorum) {
      return true;
    }
  }
  return false;
}

// QU3 (quorum.h), P-H2.
TEST(QuorumTest, RecordIsDroppedOnlyIfItCannotBeDurable) {
  for (const QuorumSizes& sizes : AllSizes()) {
    for (const ReportCounts& reports : AllReports(sizes.replica_count)) {
      SCOPED_TRACE(Name(sizes) + " have " + std::to_string(reports.have) +
                   " nack " + std::to_string(reports.nack) + " unknown " +
                   std::to_string(reports.unknown));
      const bool may = IsDurableInSomeWorld(sizes, reports);
      ASSERT_EQ(MayBeDurable(sizes, reports), may);
      if (reports.have > 0) continue;
      ASSERT_EQ(FateOf(sizes, reports), may ? Fate::kUndecided : Fate::kCut);
    }
  }
}

// P-H2: whatever the others answered, and although it may not be durable.
TEST(QuorumTest, RecordThatSomebodyHasIsKept) {
  for (const QuorumSizes& sizes : AllSizes()) {
    for (const ReportCounts& reports : AllReports(sizes.replica_count)) {
      if (reports.have == 0) continue;
      ASSERT_EQ(FateOf(sizes, reports), Fate::kKeep) << Name(sizes);
    }
  }
}

// A durable record that its holders lost is never dropped, and with every
// replica able to tell, nothing stays undecided.
TEST(QuorumTest, NackQuorumMeetsEveryWriteQuorum) {
  for (const QuorumSizes& sizes : AllSizes()) {
    const uint32_t n = sizes.replica_count;
    const auto writes = SetsOf(n, sizes.write_quorum);
    EXPECT_TRUE(AllMeet(writes, SetsOf(n, NackQuorum(sizes)))) << Name(sizes);
    EXPECT_FALSE(AllMeet(writes, SetsOf(n, NackQuorum(sizes) - 1)))
        << Name(sizes);
    EXPECT_EQ(FateOf(sizes, {0, n, 0}), Fate::kCut) << Name(sizes);
  }
}

// The least number of live replicas among which a read and a write quorum are.
TEST(QuorumTest, OpeningQuorumHoldsBothQuorums) {
  for (const QuorumSizes& sizes : AllSizes()) {
    const auto holds = [&sizes](uint32_t live) {
      return live >= sizes.write_quorum && live >= sizes.read_quorum;
    };
    EXPECT_TRUE(holds(OpeningQuorumSize(sizes))) << Name(sizes);
    EXPECT_FALSE(holds(OpeningQuorumSize(sizes) - 1)) << Name(sizes);
  }
}

// P-A3.8. Replicas that confirm an epoch meet each opening, also one with the
// least R; with one fewer there is an opening that they miss.
TEST(QuorumTest, ConfirmQuorumMeetsEachOpening) {
  for (const QuorumSizes& sizes : AllSizes()) {
    const uint32_t n = sizes.replica_count;
    const uint32_t confirm = ConfirmQuorumSize(n, sizes.write_quorum);
    EXPECT_GE(confirm, 1u) << Name(sizes);
    EXPECT_LE(confirm, sizes.write_quorum) << Name(sizes);
    const QuorumSizes least = *MakeQuorumSizes(n, sizes.write_quorum);
    const auto openings = SetsOf(n, OpeningQuorumSize(least));
    EXPECT_TRUE(AllMeet(SetsOf(n, confirm), openings)) << Name(sizes);
    EXPECT_FALSE(AllMeet(SetsOf(n, confirm - 1), openings)) << Name(sizes);
  }
}

// BA4 (ballot.h), P-H19: W = 1 or R = 1 too.
TEST(QuorumTest, OpeningQuorumsMeetEachOther) {
  for (const QuorumSizes& sizes : AllSizes()) {
    const auto openings = SetsOf(sizes.replica_count, OpeningQuorumSize(sizes));
    EXPECT_TRUE(AllMeet(openings, openings)) << Name(sizes);
  }
}

TEST(QuorumDeathTest, BrokenPreconditionsAbort) {
  const std::vector<ReplicaProgress> many(kMembersMax + 1);
  EXPECT_DEATH(DurableLsn(many, 1), "kMembersMax");
  EXPECT_DEATH(DurableLsn({}, 0), "QU1");
  EXPECT_DEATH(MayBeDurable({3, 0, 3}, {}), "QU1");
  EXPECT_DEATH(MayBeDurable({3, 4, 1}, {}), "QU1");
  EXPECT_DEATH(FateOf({3, 2, 2}, {2, 1, 1}), "P-H17");
}

}  // namespace
}  // namespace alpheus::quorum
