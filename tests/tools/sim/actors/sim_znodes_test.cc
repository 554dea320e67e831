// SPDX-License-Identifier: Apache-2.0
// Does a membership by the simulated service keep its wishes and its ballots'
// promises (MB1 to MB3 of membership.h), whatever gets lost?
#include "tools/sim/actors/sim_znodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "tests/tools/sim/actors/membership_clients.h"

namespace alpheus::sim {

using quorum::IsFirst;
using quorum::MembershipEvent;
using quorum::SessionState;

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// How often its owner polls, if nothing wakes it.
constexpr int64_t kPollNanos = 5'000;

class SimZnodesTest : public MembershipTest {
 protected:
  using MembershipTest::MembershipTest;

  // A client of node 1, 2 and so on, on machine 0, 1 and so on.
  quorum::ZnodeMembership& NewClient(uint64_t node) {
    clients_.push_back(MakeSimMembership(service_, network_.clock(), random_,
                                         static_cast<int>(node) - 1,
                                         Process(node), [this] { ++wakes_; }));
    return *clients_.back();
  }
  // All are polled meanwhile.
  void Run(int64_t ns) {
    RunUntil(ns, [] { return false; });
  }
  template <class Done>
  bool RunUntil(int64_t ns_max, const Done& done) {
    for (const int64_t until = now() + ns_max; now() < until;) {
      for (const auto& client : clients_) client->Poll();
      if (done()) return true;
      network_.Run(kPollNanos);
    }
    return false;
  }
  static bool Is(const quorum::ZnodeMembership& client, SessionState state) {
    return client.session().state == state;
  }
  quorum::ZnodeMembership& Connected(uint64_t node) {
    quorum::ZnodeMembership& client = NewClient(node);
    RunUntil(kSessionNanos,
             [&] { return Is(client, SessionState::kConnected); });
    client.TakeEvents();
    return client;
  }
  quorum::ZnodeMembership& Standing(uint64_t node) {
    quorum::ZnodeMembership& client = NewClient(node);
    client.Register({NodeId(node), 7, "", Epoch(0)});
    client.Stand();
    Run(kSessionNanos / 2);
    return client;
  }
  // Runs until the request is answered.
  std::optional<absl::StatusOr<Epoch>> Finish(quorum::BallotRequest& request) {
    std::optional<absl::StatusOr<Epoch>> result;
    RunUntil(10 * kSessionNanos, [&] {
      if (request.Poll() == Polled::kDone) result = request.ballot();
      return result.has_value();
    });
    return result;
  }
  static quorum::BallotQuestion Above(uint64_t counter) {
    const Epoch promised = counter == 0 ? Epoch(0) : BallotOf(counter, 3);
    return {{Epoch(0), promised}, kThree};
  }

  std::vector<std::unique_ptr<quorum::ZnodeMembership>> clients_;
  Random random_{7};
  int wakes_ = 0;
};

TEST_F(SimZnodesTest, WhoWishesIsRegisteredAndStands) {
  quorum::ZnodeMembership& client = NewClient(1);
  EXPECT_TRUE(Is(client, SessionState::kConnecting));
  client.Register({NodeId(1), 7, "here", Epoch(3)});
  client.Stand();
  Run(kSessionNanos / 2);
  EXPECT_TRUE(Is(client, SessionState::kConnected));
  EXPECT_THAT(client.registrations(), ElementsAre(quorum::Registration{
                                          NodeId(1), 7, "here", Epoch(3)}));
  EXPECT_TRUE(IsFirst(client, Process(1)));
  EXPECT_THAT(client.TakeEvents(),
              ElementsAre(MembershipEvent::kSessionChanged,
                          MembershipEvent::kCandidatesChanged,
                          MembershipEvent::kRegistrationsChanged));
  EXPECT_GT(wakes_, 0);
}

TEST_F(SimZnodesTest, TheLastChangeIsToldWhateverTheWatchMissed) {
  quorum::ZnodeMembership& witness = Standing(1);
  quorum::ZnodeMembership& other = Standing(2);
  EXPECT_EQ(witness.candidates().size(), 2u);
  for (int i = 0; i < 3; ++i) {
    other.Withdraw();
    Run(kAnswerNanos);
    other.Stand();
    Run(kAnswerNanos);
  }
  other.Withdraw();
  Run(kSessionNanos / 2);
  EXPECT_EQ(witness.candidates().size(), 1u);
  EXPECT_TRUE(IsFirst(witness, Process(1)));
}

TEST_F(SimZnodesTest, ASessionIsKeptForAsLongAsItIsPolled) {
  quorum::ZnodeMembership& client = Connected(1);
  const quorum::Session session = client.session();
  Run(10 * kSessionNanos);
  EXPECT_EQ(client.session(), session);
  EXPECT_THAT(client.TakeEvents(), IsEmpty());
}

// By its own deadlines, too.
TEST_F(SimZnodesTest, NextPollIsSoonEnoughToKeepASession) {
  quorum::ZnodeMembership& client = Connected(1);
  for (int i = 0; i < 40; ++i) {
    network_.Run(std::max<int64_t>(client.NextPoll().at_nanos() - now(), 1));
    client.Poll();
    network_.Run(kAnswerNanos);
    client.Poll();
  }
  EXPECT_GT(now(), 3 * kSessionNanos);
  EXPECT_TRUE(Is(client, SessionState::kConnected));
}

TEST_F(SimZnodesTest, ALostConnectionSuspendsASessionThatGoesOn) {
  quorum::ZnodeMembership& client = Standing(1);
  const uint64_t session = client.session().id;
  client.TakeEvents();
  service_.CutFrom(0);
  // Requests still arrive, and keep it alive.
  Run(2 * kSessionNanos);
  EXPECT_TRUE(Is(client, SessionState::kSuspended));
  EXPECT_THAT(client.TakeEvents(),
              ElementsAre(MembershipEvent::kSessionChanged));
  service_.HealFrom(0);
  Run(kSessionNanos);
  EXPECT_EQ(client.session(),
            (quorum::Session{session, SessionState::kConnected}));
  EXPECT_THAT(client.TakeEvents(), Contains(MembershipEvent::kSessionChanged));
  EXPECT_TRUE(IsFirst(client, Process(1)));
}

TEST_F(SimZnodesTest, AnExpiredSessionIsToldOnceTheServiceIsReached) {
  quorum::ZnodeMembership& client = Standing(1);
  const uint64_t session = client.session().id;
  service_.CutTo(0);
  Run(3 * kSessionNanos);
  EXPECT_TRUE(Is(client, SessionState::kSuspended));
  service_.HealTo(0);
  Run(kSessionNanos);
  ASSERT_TRUE(Is(client, SessionState::kExpired));
  EXPECT_FALSE(client.NextPoll().is_set());
  client.Renew();
  Run(kSessionNanos / 2);
  EXPECT_TRUE(Is(client, SessionState::kConnected));
  EXPECT_NE(client.session().id, session);
  // The new session has the registration and the place that were wished for
  // before.
  EXPECT_EQ(client.registrations().size(), 1u);
  EXPECT_TRUE(IsFirst(client, Process(1)));
}

TEST_F(SimZnodesTest, WhoseSessionExpiredIsNotFirstAnyMore) {
  quorum::ZnodeMembership& first = Standing(1);
  quorum::ZnodeMembership& second = Standing(2);
  EXPECT_FALSE(IsFirst(second, Process(2)));
  service_.Expire(0);
  Run(kSessionNanos);
  EXPECT_TRUE(IsFirst(second, Process(2)));
  first.Renew();
  Run(kSessionNanos);
  // It stands again, behind the other.
  EXPECT_EQ(second.candidates().size(), 2u);
  EXPECT_TRUE(IsFirst(first, Process(2)));
}

TEST_F(SimZnodesTest, WhoseWishToStandWasAnsweredByNobodyStandsOnce) {
  quorum::ZnodeMembership& client = Connected(1);
  service_.CutFrom(0);
  client.Register({NodeId(1), 7, "", Epoch(0)});
  client.Stand();
  Run(kSessionNanos);
  service_.HealFrom(0);
  Run(kSessionNanos);
  EXPECT_EQ(client.candidates().size(), 1u);
  client.Withdraw();
  Run(kSessionNanos / 2);
  EXPECT_THAT(client.candidates(), IsEmpty());
}

TEST_F(SimZnodesTest, OnlyAnExpiredSessionIsRenewed) {
  quorum::ZnodeMembership& client = Connected(1);
  EXPECT_DEATH(client.Renew(), "a session that lives is not renewed");
}

TEST_F(SimZnodesTest, BallotsRiseAboveTheRegisterAndAllPromises) {
  quorum::ZnodeMembership& one = NewClient(1);
  quorum::ZnodeMembership& two = NewClient(2);
  const auto first = one.Ask(Above(6));
  EXPECT_EQ(**Finish(*first), BallotOf(7, 1));
  const auto second = two.Ask(Above(2));
  EXPECT_EQ(**Finish(*second), BallotOf(8, 2));
  EXPECT_EQ(violated(), "");
}

TEST_F(SimZnodesTest, TwoThatAskAtOnceAreNotGivenOneCounter) {
  quorum::ZnodeMembership& one = Connected(1);
  quorum::ZnodeMembership& two = Connected(2);
  const auto first = one.Ask(Above(0));
  const auto second = two.Ask(Above(0));
  std::optional<absl::StatusOr<Epoch>> a;
  std::optional<absl::StatusOr<Epoch>> b;
  ASSERT_TRUE(RunUntil(kSessionNanos, [&] {
    if (!a && first->Poll() == Polled::kDone) a = first->ballot();
    if (!b && second->Poll() == Polled::kDone) b = second->ballot();
    return a && b;
  }));
  EXPECT_NE(quorum::BallotCounter(**a), quorum::BallotCounter(**b));
  EXPECT_EQ(violated(), "");
}

// MB3: by the time that it could be read again it may be another process's. The
// register does not answer in time, so that the promises give the next one.
TEST_F(SimZnodesTest, ABallotWhoseAnswerIsLostIsConsumed) {
  quorum::ZnodeMembership& client = Connected(1);
  Run(kSessionNanos / 10);
  const auto request = client.Ask(Above(0));
  EXPECT_EQ(request->Poll(), Polled::kIdle);  // reads
  for (const int before = wakes_; wakes_ == before;) {
    ASSERT_TRUE(network_.Step());
  }
  EXPECT_EQ(request->Poll(), Polled::kIdle);  // writes
  service_.CutFrom(0);
  network_.Run(kAnswerNanos);
  EXPECT_EQ(service_.ballots(), (quorum::BallotRegister{BallotOf(1, 1), 0}));
  EXPECT_EQ(**Finish(*request), BallotOf(2, 1));
  EXPECT_FALSE(request->is_of_register());
  EXPECT_EQ(service_.ballots(), (quorum::BallotRegister{BallotOf(1, 1), 0}));
  // It comes back.
  service_.HealFrom(0);
  Run(2 * kSessionNanos);
  const auto next = client.Ask(Above(0));
  EXPECT_EQ(**Finish(*next), BallotOf(3, 1));
  EXPECT_TRUE(next->is_of_register());
  EXPECT_EQ(service_.ballots(), (quorum::BallotRegister{BallotOf(3, 1), 1}));
}

TEST_F(SimZnodesTest, WithoutTheServiceBallotsComeFromThePromises) {
  quorum::ZnodeMembership& client = Connected(1);
  service_.Stop();
  const auto request = client.Ask(Above(4));
  EXPECT_EQ(**Finish(*request), BallotOf(5, 1));
  EXPECT_FALSE(request->is_of_register());
  service_.Start(/*with_sessions=*/false);
  Run(3 * kSessionNanos);
  ASSERT_TRUE(Is(client, SessionState::kExpired));
  const auto next = client.Ask(Above(4));
  EXPECT_EQ(next->Poll(), Polled::kDone);
  EXPECT_EQ(*next->ballot(), BallotOf(6, 1));
}

TEST_F(SimZnodesTest, ABallotThatNobodyWaitsForIsAbandoned) {
  quorum::ZnodeMembership& client = Connected(1);
  client.Ask(Above(0)).reset();
  const auto request = client.Ask(Above(0));
  EXPECT_TRUE((*Finish(*request)).ok());
  EXPECT_EQ(service_.ballots()->version, 0);
}

// By hand: it is made again.
TEST_F(SimZnodesTest, WhoseZnodesAreDeletedStandsAgain) {
  quorum::ZnodeMembership& client = Standing(1);
  service_.Delete("/alpheus");
  Run(2 * kSessionNanos);
  EXPECT_TRUE(IsFirst(client, Process(1)));
}

// P-A4.1: promises are above it, and it is raised to them.
TEST_F(SimZnodesTest, AnOlderRegisterGivesNoOlderBallots) {
  quorum::ZnodeMembership& client = NewClient(1);
  Epoch last;
  for (int i = 0; i < 6; ++i) {
    const auto request = client.Ask({{Epoch(0), last}, kThree});
    last = **Finish(*request);
  }
  service_.RollBack();
  Run(kSessionNanos);
  client.Renew();
  ASSERT_TRUE(!service_.ballots() || service_.ballots()->last < last);
  quorum::ZnodeMembership& other = NewClient(2);
  const auto request = other.Ask({{Epoch(0), last}, kThree});
  EXPECT_GT(**Finish(*request), last);
  EXPECT_EQ(violated(), "");
}

TEST_F(SimZnodesTest, ACanaryGivesTheBallotOfAnother) {
  quorum::ZnodeMembership& one = NewClient(1);
  const auto first = one.Ask(Above(0));
  const Epoch given = **Finish(*first);
  SharedBallots canary(NewClient(2), service_, Process(2));
  const auto second = canary.Ask(Above(0));
  EXPECT_EQ(**Finish(*second), given);
}

}  // namespace
}  // namespace alpheus::sim
