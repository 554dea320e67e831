// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recovery/protocol/reject_counters.h"

namespace alpheus::recovery {
namespace {

using ::testing::HasSubstr;

constexpr Hello kHello{{1, 2}, {7, 8}, {NodeId(2), 5}};
constexpr ServerHello kServerHello{NodeId(3), 33, 4096, Epoch(4), 1};

quorum::ClusterKey KeyOf(unsigned char byte) {
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{byte});
  return quorum::ClusterKey(bytes);
}

// Both ends, each with its own idea of what was said.
class KeyHandshakeTest : public ::testing::Test {
 protected:
  // Runs a handshake. Returns the first refusal of either end, or OK.
  absl::Status Shake(const Hello& primary_says, const Hello& replica_heard,
                     const ServerHello& replica_says,
                     const ServerHello& primary_heard) {
    PrimaryHandshake primary({KeyOf(1), &primary_random_});
    ReplicaHandshake replica({KeyOf(1), &replica_random_}, replica_heard,
                             replica_says);
    const auto challenged =
        replica.Reply(primary.Begin(primary_says, primary_heard));
    const auto prove = primary.Reply(std::get<Challenged>(*challenged));
    if (!prove.ok()) return prove.status();
    return replica.Reply(*prove).status();
  }

  Random primary_random_{1};
  Random replica_random_{2};
};

TEST_F(KeyHandshakeTest, WhoeverHasTheKeyMayAsk) {
  PrimaryHandshake primary({KeyOf(1), &primary_random_});
  ReplicaHandshake replica({KeyOf(1), &replica_random_}, kHello, kServerHello);
  ASSERT_TRUE(primary.is_needed());
  const auto challenged = replica.Reply(primary.Begin(kHello, kServerHello));
  ASSERT_TRUE(challenged.ok()) << challenged.status();
  EXPECT_FALSE(replica.is_over());
  const auto prove = primary.Reply(std::get<Challenged>(*challenged));
  ASSERT_TRUE(prove.ok()) << prove.status();
  EXPECT_EQ(*replica.Reply(*prove), Message(Proved{}));
  EXPECT_TRUE(replica.is_over());
}

TEST_F(KeyHandshakeTest, IsNoneWithoutAKey) {
  EXPECT_FALSE(PrimaryHandshake({}).is_needed());
  EXPECT_TRUE(ReplicaHandshake({}, kHello, kServerHello).is_over());
}

// If somebody in between changed anything, neither end continues.
TEST_F(KeyHandshakeTest, EverythingThatWasSaidIsSigned) {
  ASSERT_TRUE(Shake(kHello, kHello, kServerHello, kServerHello).ok());
  std::vector<Hello> hellos(4, kHello);
  hellos[0].cluster_id.low = 9;
  hellos[1].log_id.high = 9;
  hellos[2].primary.node = NodeId(9);
  hellos[3].primary.incarnation = 9;
  for (const Hello& hello : hellos) {
    EXPECT_TRUE(absl::IsUnauthenticated(
        Shake(kHello, hello, kServerHello, kServerHello)));
  }
  std::vector<ServerHello> server_hellos(6, kServerHello);
  server_hellos[0].node = NodeId(9);
  server_hellos[1].incarnation = 9;
  server_hellos[2].ring_capacity = 8192;
  server_hellos[3].promised = Epoch(9);
  server_hellos[4].configuration_id = 9;
  server_hellos[5].platform.ddio = !kServerHello.platform.ddio;
  for (const ServerHello& server_hello : server_hellos) {
    EXPECT_TRUE(absl::IsUnauthenticated(
        Shake(kHello, kHello, kServerHello, server_hello)));
  }
}

TEST_F(KeyHandshakeTest, ReplicaWithAnotherKeyIsNotBelieved) {
  PrimaryHandshake primary({KeyOf(1), &primary_random_});
  ReplicaHandshake replica({KeyOf(2), &replica_random_}, kHello, kServerHello);
  const auto challenged = replica.Reply(primary.Begin(kHello, kServerHello));
  const auto prove = primary.Reply(std::get<Challenged>(*challenged));
  EXPECT_TRUE(absl::IsUnauthenticated(prove.status()));
  EXPECT_THAT(std::string(prove.status().message()),
              HasSubstr("another cluster key"));
}

// HSK2, for the primary: a replica's reply to another challenge is no proof.
TEST_F(KeyHandshakeTest, ReplicasRecordedProofIsNotBelieved) {
  PrimaryHandshake primary({KeyOf(1), &primary_random_});
  ReplicaHandshake replica({KeyOf(1), &replica_random_}, kHello, kServerHello);
  const auto recorded = replica.Reply(primary.Begin(kHello, kServerHello));
  primary.Begin(kHello, kServerHello);
  EXPECT_TRUE(absl::IsUnauthenticated(
      primary.Reply(std::get<Challenged>(*recorded)).status()));
}

// HSK2, for the replica.
TEST_F(KeyHandshakeTest, PrimarysRecordedProofIsNotBelieved) {
  PrimaryHandshake primary({KeyOf(1), &primary_random_});
  const Challenge challenge = primary.Begin(kHello, kServerHello);
  ReplicaHandshake first({KeyOf(1), &replica_random_}, kHello, kServerHello);
  const auto challenged = first.Reply(challenge);
  const Prove recorded = *primary.Reply(std::get<Challenged>(*challenged));
  ASSERT_TRUE(first.Reply(recorded).ok());
  ReplicaHandshake second({KeyOf(1), &replica_random_}, kHello, kServerHello);
  ASSERT_TRUE(second.Reply(challenge).ok());
  const absl::Status replayed = second.Reply(recorded).status();
  EXPECT_TRUE(absl::IsUnauthenticated(replayed)) << replayed;
  EXPECT_EQ(ReasonOf(replayed), RejectReason::kWrongKey);
  EXPECT_FALSE(second.is_over());
}

// HSK3: the replica has signed the very same words.
TEST_F(KeyHandshakeTest, ReplicasOwnProofSentBackProvesNothing) {
  ReplicaHandshake replica({KeyOf(1), &replica_random_}, kHello, kServerHello);
  const auto challenged = replica.Reply(Challenge{{3, 4}});
  const Prove echo{std::get<Challenged>(*challenged).proof};
  EXPECT_TRUE(absl::IsUnauthenticated(replica.Reply(echo).status()));
  EXPECT_FALSE(replica.is_over());
}

TEST_F(KeyHandshakeTest, NoncesAreDrawnAgainAndNeverZero) {
  class Zeros final : public RandomSource {
   public:
    uint64_t Next() override { return ++count_ <= 6 ? 0 : count_; }

   private:
    uint64_t count_ = 0;
  };
  Zeros zeros;
  PrimaryHandshake primary({KeyOf(1), &zeros});
  const Nonce first = primary.Begin(kHello, kServerHello).nonce;
  EXPECT_NE(first, Nonce());
  EXPECT_NE(primary.Begin(kHello, kServerHello).nonce, first);
}

// A message out of turn is refused in each stage, with a reason of its own.
TEST_F(KeyHandshakeTest, MessageOutOfTurnIsRefused) {
  const Challenge challenge{{3, 4}};
  const auto refused = [](ReplicaHandshake& replica, const Message& message) {
    return ReasonOf(replica.Reply(message).status());
  };
  ReplicaHandshake fresh({KeyOf(1), &replica_random_}, kHello, kServerHello);
  EXPECT_EQ(refused(fresh, Prove{}), RejectReason::kOutOfTurn);
  EXPECT_EQ(refused(fresh, View{}), RejectReason::kNoProof);
  EXPECT_EQ(refused(fresh, Proved{}), RejectReason::kNoProof);
  ASSERT_TRUE(fresh.Reply(challenge).ok());
  EXPECT_EQ(refused(fresh, challenge), RejectReason::kOutOfTurn);
  EXPECT_EQ(refused(fresh, View{}), RejectReason::kNoProof);
  EXPECT_EQ(refused(fresh, Prove{}), RejectReason::kWrongKey);
  ReplicaHandshake keyless({}, kHello, kServerHello);
  EXPECT_EQ(refused(keyless, challenge), RejectReason::kNoKeyHere);
  EXPECT_EQ(refused(keyless, Prove{}), RejectReason::kOutOfTurn);
}

// --- RejectCounters
// ----------------------------------------------------------------

TEST(RejectCountersTest, ReasonGoesWithTheStatus) {
  const absl::Status why = absl::NotFoundError("none");
  EXPECT_EQ(ReasonOf(why), std::nullopt);
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < kRejectReasonCount; ++i) {
    const auto reason = static_cast<RejectReason>(i);
    const absl::Status refused = Rejection(reason, why);
    EXPECT_EQ(ReasonOf(refused), reason);
    EXPECT_EQ(refused.code(), why.code());
    EXPECT_EQ(refused.message(), why.message());
    names.insert(RejectReasonName(reason));
  }
  EXPECT_EQ(names.size(), kRejectReasonCount);
}

TEST(RejectCountersTest, AllAreCountedAndTheFirstOfAHostAndReasonIsTold) {
  RejectCounters rejects;
  EXPECT_TRUE(rejects.Note("10.0.0.1:7", RejectReason::kWrongKey));
  EXPECT_FALSE(rejects.Note("10.0.0.1:8", RejectReason::kWrongKey));
  EXPECT_TRUE(rejects.Note("10.0.0.1:8", RejectReason::kNoProof));
  EXPECT_TRUE(rejects.Note("[::1]:8", RejectReason::kWrongKey));
  EXPECT_FALSE(rejects.Note("[::1]:9", RejectReason::kWrongKey));
  EXPECT_EQ(rejects.count(RejectReason::kWrongKey), 4u);
  EXPECT_EQ(rejects.total(), 5u);
  RejectCounts expected{};
  expected[static_cast<size_t>(RejectReason::kNoProof)] = 1;
  expected[static_cast<size_t>(RejectReason::kWrongKey)] = 4;
  EXPECT_EQ(rejects.counts(), expected);
}

// REF1.
TEST(RejectCountersTest, WithTooManyHostsTheRestIsOnlyCounted) {
  RejectCounters rejects;
  uint64_t told = 0;
  for (uint64_t i = 0; i < 2 * RejectCounters::kPeersReported; ++i) {
    told +=
        rejects.Note(std::to_string(i) + ":1", RejectReason::kNoRoom) ? 1 : 0;
  }
  EXPECT_EQ(told, RejectCounters::kPeersReported);
  EXPECT_EQ(rejects.total(), 2 * RejectCounters::kPeersReported);
}

}  // namespace
}  // namespace alpheus::recovery
