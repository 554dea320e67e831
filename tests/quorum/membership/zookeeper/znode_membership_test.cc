// SPDX-License-Identifier: Apache-2.0
// Does a membership by znodes keep its rules (ZM1 to ZM19), whatever a service
// answers, loses or says?
#include "quorum/membership/zookeeper/znode_membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "log/base/random.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "tests/quorum/membership/zookeeper/fake_znodes.h"

namespace alpheus::quorum {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr QuorumSizes kThree{3, 2, 2};
constexpr Uuid kCluster{0xc1, 0x57e4};
constexpr int64_t kPatienceNanos = 100 * kMilli;

PrimaryId Process(uint64_t node) { return {NodeId(node), node << 48 | 7}; }
Epoch BallotBy(uint64_t counter, uint64_t node) {
  return PackBallot({counter, Process(node)});
}
BallotQuestion Above(uint64_t counter) {
  return {{Epoch(0), counter == 0 ? Epoch(0) : BallotBy(counter, 3)}, kThree};
}

class ZnodeMembershipTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSession = 100;

  ZnodeMembership& New(uint64_t node) {
    ZnodeMembershipOptions options;
    options.self = Process(node);
    options.cluster_id = kCluster;
    options.log_name = "orders";
    options.register_patience_ns = kPatienceNanos;
    options.spread_ns = spread_ns_;
    options.observes = observes_;
    options.look_ns = look_ns_;
    memberships_.push_back(
        *ZnodeMembership::Start(service_.Maker(), clock_, random_, options));
    return *memberships_.back();
  }
  ZnodeMembership& Connected(uint64_t node) {
    ZnodeMembership& membership = New(node);
    service_.session().Connect(service_.next_session++);
    Run(20 * kMilli);
    EXPECT_EQ(membership.session().state, SessionState::kConnected);
    return membership;
  }
  ZnodeMembership& Standing(uint64_t node) {
    ZnodeMembership& membership = Connected(node);
    membership.Register({NodeId(node), 7, "here", Epoch(3)});
    membership.Stand();
    Run(50 * kMilli);
    return membership;
  }
  void Run(int64_t ns) {
    for (const int64_t until = clock_.now_ns + ns; clock_.now_ns < until;
         clock_.now_ns += kMilli) {
      for (const auto& membership : memberships_) {
        membership->Poll();
        EXPECT_GE(membership->NextPoll().at_nanos(), clock_.now_ns) << "ZM16";
      }
    }
  }
  // Waits until a request is answered, and returns the answer.
  absl::StatusOr<Epoch> Finish(BallotRequest& request) {
    for (int i = 0; i < 1'000; ++i) {
      if (request.Poll() == Polled::kDone) return request.ballot();
      Run(kMilli);
    }
    return absl::DeadlineExceededError("no ballot came");
  }
  // Returns the ballot that comes with one Poll; 0: none does.
  static Epoch AtOnce(ZnodeMembership& membership, uint64_t above) {
    const auto request = membership.Ask(Above(above));
    if (request->Poll() != Polled::kDone) return Epoch(0);
    return request->ballot().value_or(Epoch(0));
  }
  std::string PathOf(const std::string& name) const {
    return "/alpheus/" + kCluster.ToString() + name;
  }
  std::string ballot_path() const { return PathOf("/logs/orders/ballot"); }
  std::string PrimaryPath(Epoch epoch) const {
    return PathOf("/logs/orders/live/" + PrimaryName(epoch));
  }
  std::vector<std::string> CandidatesInTree() const {
    std::vector<std::string> found;
    for (const auto& [path, node] : service_.tree) {
      if (path.starts_with(PathOf("/logs/orders/candidates/"))) {
        found.push_back(path);
      }
    }
    return found;
  }
  // Each request to a path that ends so has that outcome; if `too`, it takes
  // effect all the same.
  void Fail(ZnodeCall call, const std::string& suffix, ZnodeOutcome outcome) {
    service_.fault =
        [=](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
      if (request.call != call || !request.path.ends_with(suffix)) {
        return std::nullopt;
      }
      return outcome;
    };
  }

  int64_t spread_ns_ = 0;
  bool observes_ = false;
  int64_t look_ns_ = 0;
  TestClock clock_;
  Random random_{5};
  FakeService service_{clock_};
  std::vector<std::unique_ptr<ZnodeMembership>> memberships_;
};

TEST_F(ZnodeMembershipTest, TheTreeIsMadeWhereThereIsNone) {
  Connected(1);
  EXPECT_EQ(service_.At(PathOf("/format")), EncodeFormat());
  for (const char* path : {"/nodes", "/logs/orders", "/logs/orders/candidates",
                           "/logs/orders/live"}) {
    EXPECT_EQ(service_.At(PathOf(path)), "") << path;
  }
}

// ZM3, the first time, too.
TEST_F(ZnodeMembershipTest, NothingIsReadBeforeASync) {
  ZnodeMembership& membership = Standing(1);
  ASSERT_EQ(service_.requests.front().call, ZnodeCall::kSync);
  service_.session().Lose();
  Run(kMilli);
  EXPECT_EQ(membership.session().state, SessionState::kSuspended);
  service_.requests.clear();
  service_.session().Connect(kSession);
  service_.answers = false;
  Run(5 * kMilli);
  ASSERT_EQ(service_.requests.size(), 1u);
  EXPECT_EQ(service_.requests.front().call, ZnodeCall::kSync);
  // It counts as connected only then.
  EXPECT_EQ(membership.session().state, SessionState::kSuspended);
  service_.answers = true;
  Run(20 * kMilli);
  EXPECT_EQ(membership.session().state, SessionState::kConnected);
  // Its knowledge may be old.
  EXPECT_EQ(service_.CountOf(ZnodeCall::kList, "/candidates"), 1u);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kList, "/nodes"), 1u);
}

TEST_F(ZnodeMembershipTest, AConnectionThatIsLostAndMadeBetweenTwoPollsIsSeen) {
  ZnodeMembership& membership = Standing(1);
  service_.requests.clear();
  service_.session().Lose();
  service_.session().Connect(kSession);
  Run(20 * kMilli);
  ASSERT_FALSE(service_.requests.empty());
  EXPECT_EQ(service_.requests.front().call, ZnodeCall::kSync);
  EXPECT_EQ(membership.session().state, SessionState::kConnected);
}

// ZM3, ZN1: a client may keep a request that it could not send, and send it
// over the next connection.
TEST_F(ZnodeMembershipTest, ARequestOfAnEarlierConnectionIsNotWaitedFor) {
  ZnodeMembership& one = Standing(1);
  const std::string folder = PathOf("/logs/orders/candidates");
  service_.answers = false;
  service_.requests.clear();
  service_.Tell(folder);
  Run(5 * kMilli);
  ASSERT_EQ(service_.CountOf(ZnodeCall::kList, "/candidates"), 1u);
  service_.session().Connect(kSession);
  Run(5 * kMilli);
  ASSERT_EQ(service_.requests.size(), 2u);
  EXPECT_EQ(service_.requests.back().call, ZnodeCall::kSync);
  EXPECT_EQ(one.session().state, SessionState::kSuspended);
  service_.answers = true;
  Run(50 * kMilli);
  EXPECT_EQ(one.session().state, SessionState::kConnected);
  // The list that came first was read before the sync: it is read again.
  EXPECT_EQ(service_.CountOf(ZnodeCall::kList, "/candidates"), 2u);
}

// The same, of a number that is to be written: ZM1.
TEST_F(ZnodeMembershipTest, ABallotOfAnEarlierConnectionIsConsumed) {
  ZnodeMembership& one = Connected(1);
  ASSERT_EQ(*Finish(*one.Ask(Above(0))), BallotBy(1, 1));
  service_.requests.clear();
  const auto request = one.Ask(Above(0));
  for (int i = 0; service_.CountOf(ZnodeCall::kSet, "/ballot") == 0; ++i) {
    ASSERT_LT(i, 20);
    Run(kMilli);
    service_.answers = service_.CountOf(ZnodeCall::kSet, "/ballot") == 0;
  }
  service_.session().Connect(kSession);
  Run(kMilli);
  service_.answers = true;
  EXPECT_EQ(*Finish(*request), BallotBy(3, 1));
  EXPECT_TRUE(request->is_of_register());
  EXPECT_EQ(one.counters().consumed, 1u);
}

TEST_F(ZnodeMembershipTest, WhoStandsAndIsRegisteredIsSeenByOthers) {
  Standing(1);
  ZnodeMembership& two = Standing(2);
  ASSERT_EQ(two.candidates().size(), 2u);
  EXPECT_EQ(two.candidates()[0].primary, Process(1));
  EXPECT_EQ(two.candidates()[1].primary, Process(2));
  EXPECT_THAT(two.registrations(),
              ElementsAre(Registration{NodeId(1), 7, "here", Epoch(3)},
                          Registration{NodeId(2), 7, "here", Epoch(3)}));
  EXPECT_TRUE(IsFirst(*memberships_[0], Process(1)));
  EXPECT_FALSE(IsFirst(two, Process(2)));
  EXPECT_EQ(two.descriptor(), 42);
}

TEST_F(ZnodeMembershipTest, WhatACandidateSaysDecidesWhoIsFirst) {
  Standing(1);
  ZnodeMembership& two = Standing(2);
  two.Describe({Lsn(40), 0});
  Run(50 * kMilli);
  EXPECT_TRUE(IsFirst(two, Process(2)));
  EXPECT_EQ(memberships_[0]->candidates()[0].merits, (Merits{Lsn(40), 0}));
  memberships_[0]->Describe({Lsn(40), 1});
  Run(50 * kMilli);
  EXPECT_TRUE(IsFirst(*memberships_[0], Process(1)));
  // A later epoch: records of the earlier one may be dropped.
  two.Describe({Lsn(9), 0, BallotBy(4, 1)});
  Run(50 * kMilli);
  EXPECT_TRUE(IsFirst(two, Process(2)));
  EXPECT_EQ(CandidatesInTree().size(), 2u);
}

TEST_F(ZnodeMembershipTest, WhoWithdrawsIsNoCandidate) {
  Standing(1).Withdraw();
  Run(50 * kMilli);
  EXPECT_THAT(CandidatesInTree(), IsEmpty());
  EXPECT_THAT(memberships_[0]->candidates(), IsEmpty());
}

TEST_F(ZnodeMembershipTest, WhoUnregistersIsNotRegistered) {
  Standing(1).Unregister();
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PathOf("/nodes/1-0000000000000007")), "none");
  EXPECT_THAT(memberships_[0]->registrations(), IsEmpty());
  EXPECT_EQ(CandidatesInTree().size(), 1u);
}

// ZM19: the end of a session that has znodes waits for the service.
TEST_F(ZnodeMembershipTest, WhoHasTakenAllBackHasNothingToWaitFor) {
  ZnodeMembership& one = Standing(1);
  EXPECT_TRUE(service_.session().has_ephemerals());
  one.Unregister();
  Run(50 * kMilli);
  EXPECT_TRUE(service_.session().has_ephemerals());
  one.Withdraw();
  EXPECT_TRUE(service_.session().has_ephemerals());
  Run(50 * kMilli);
  ASSERT_TRUE(one.is_settled());
  EXPECT_FALSE(service_.session().has_ephemerals());
  // Lists are of no concern any more.
  service_.requests.clear();
  service_.Tell(PathOf("/nodes"));
  Run(20 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kList, "/nodes"), 0u);
  one.Register({NodeId(1), 7, "here", Epoch(3)});
  Run(50 * kMilli);
  EXPECT_TRUE(service_.session().has_ephemerals());
  EXPECT_EQ(one.registrations().size(), 1u);
}

// ZM12: an owner that ends its wishes waits for that before it ends.
TEST_F(ZnodeMembershipTest, IsSettledOnceTheServiceHasItsWishesAndNoMore) {
  ZnodeMembership& one = New(1);
  EXPECT_FALSE(one.is_settled());
  service_.session().Connect(service_.next_session++);
  one.Poll();
  EXPECT_FALSE(one.is_settled());  // not synced
  Run(20 * kMilli);
  EXPECT_TRUE(one.is_settled());
  one.Stand();
  EXPECT_FALSE(one.is_settled());
  while (!one.is_settled()) Run(kMilli);
  EXPECT_EQ(CandidatesInTree().size(), 1u);
  EXPECT_TRUE(IsFirst(one, Process(1)));
  one.Withdraw();
  EXPECT_FALSE(one.is_settled());
  while (!one.is_settled()) Run(kMilli);
  EXPECT_THAT(CandidatesInTree(), IsEmpty());
  // Another one comes: the list has to be read.
  one.Stand();
  while (!one.is_settled()) Run(kMilli);
  service_.Put(PathOf("/logs/orders/candidates/") +
                   CandidatePrefix(Process(2), 3) + "0000000009",
               EncodeMerits({}), 77);
  service_.Tell(PathOf("/logs/orders/candidates"));
  one.Poll();
  EXPECT_FALSE(one.is_settled());
  while (!one.is_settled()) Run(kMilli);
  EXPECT_EQ(one.candidates().size(), 2u);
  service_.session().Lose();
  one.Poll();
  EXPECT_FALSE(one.is_settled());
}

// ZM12: a wish during a ping is not fulfilled by the answer.
TEST_F(ZnodeMembershipTest, IsNotSettledByAnAnswerToAPing) {
  ZnodeMembership& one = Connected(1);
  ASSERT_TRUE(one.is_settled());
  service_.answers = false;
  service_.requests.clear();
  while (service_.requests.empty()) Run(kMilli);
  ASSERT_EQ(service_.CountOf(ZnodeCall::kGet, "/format"), 1u);
  EXPECT_TRUE(one.is_settled());
  one.Stand();
  EXPECT_FALSE(one.is_settled());
  service_.answers = true;
  one.Poll();
  EXPECT_FALSE(one.is_settled());
  Run(20 * kMilli);
  EXPECT_TRUE(one.is_settled());
}

TEST_F(ZnodeMembershipTest, AnotherTimeoutThanWasAskedForIsWarnedOf) {
  EXPECT_EQ(Connected(1).warning(), "");
  service_.asked_ns = 6'000 * kMilli;
  EXPECT_THAT(memberships_[0]->warning(),
              AllOf(HasSubstr("after 600 ms of silence"),
                    HasSubstr("asks for 6000 ms")));
  EXPECT_TRUE(memberships_[0]->problem().ok());
}

// ZM11.
TEST_F(ZnodeMembershipTest, AServiceThatIsOverloadedIsLeftAloneForAWhile) {
  ZnodeMembership& one = Connected(1);
  service_.fault = [](const ZnodeRequest&) {
    return ZnodeOutcome::kOverloaded;
  };
  service_.requests.clear();
  const auto request = one.Ask(Above(4));
  EXPECT_EQ(*Finish(*request), BallotBy(5, 1));
  EXPECT_FALSE(request->is_of_register());
  one.Stand();
  Run(20 * kMilli);
  EXPECT_TRUE(absl::IsResourceExhausted(one.problem())) << one.problem();
  EXPECT_FALSE(one.is_settled());
  const size_t asked = service_.requests.size();
  Run(1'000 * kMilli);
  EXPECT_LT(service_.requests.size(), asked + 30);  // pings
  service_.fault = nullptr;
  Run(3'000 * kMilli);
  EXPECT_TRUE(one.is_settled());
  EXPECT_TRUE(one.problem().ok()) << one.problem();
  EXPECT_EQ(CandidatesInTree().size(), 1u);
}

// The same, before the first answer. Its owner sleeps meanwhile: ZM16.
TEST_F(ZnodeMembershipTest, AnOverloadedServiceIsNotAskedForASyncAtOnce) {
  ZnodeMembership& one = New(1);
  service_.fault = [](const ZnodeRequest&) {
    return ZnodeOutcome::kOverloaded;
  };
  service_.session().Connect(service_.next_session++);
  Run(1'000 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kSync, ""), 1u);
  EXPECT_EQ(one.session().state, SessionState::kConnecting);
  EXPECT_GE(one.NextPoll().at_nanos(), clock_.now_ns);
  EXPECT_LE(one.NextPoll().at_nanos(), clock_.now_ns + 1'010 * kMilli);
  service_.fault = nullptr;
  Run(1'100 * kMilli);
  EXPECT_EQ(one.session().state, SessionState::kConnected);
}

// ZM13.
TEST_F(ZnodeMembershipTest, AListThatChangesForAllIsReadAtRandomTimes) {
  constexpr int64_t kSpread = 10;
  spread_ns_ = kSpread * kMilli;
  for (uint64_t node = 1; node <= 5; ++node) Connected(node).Stand();
  Run(200 * kMilli);
  ASSERT_EQ(CandidatesInTree().size(), 5u);
  for (const auto& one : memberships_) ASSERT_TRUE(one->is_settled());
  const std::string folder = PathOf("/logs/orders/candidates");
  service_.Put(folder + "/" + CandidatePrefix(Process(6), 3) + "0000000009",
               EncodeMerits({}), 77);
  service_.requests.clear();
  service_.Tell(folder);
  size_t most = 0;
  size_t before = 0;
  for (int i = 0; i <= kSpread + 1; ++i) {
    Run(kMilli);
    // Each knows that it does not know all.
    for (const auto& one : memberships_) {
      EXPECT_NE(one->is_settled(), one->candidates().size() == 5);
    }
    const size_t now = service_.CountOf(ZnodeCall::kList, "/candidates");
    most = std::max(most, now - std::exchange(before, now));
  }
  EXPECT_EQ(before, 5u);
  EXPECT_LT(most, 5u);
  Run(10 * kMilli);
  for (const auto& one : memberships_) {
    EXPECT_EQ(one->candidates().size(), 6u);
    EXPECT_TRUE(one->is_settled());
  }
}

// ZM13: nobody else waits for it.
TEST_F(ZnodeMembershipTest, WhatItWroteItselfIsReadAtOnce) {
  spread_ns_ = 1'000 * kMilli;
  ZnodeMembership& one = Connected(1);
  Run(1'000 * kMilli);
  one.Stand();
  one.Register({NodeId(1), 7, "here", Epoch(3)});
  Run(50 * kMilli);
  ASSERT_TRUE(one.is_settled());
  one.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(20 * kMilli);
  EXPECT_TRUE(one.is_settled());
  EXPECT_EQ(one.live_primary()->epoch, BallotBy(4, 1));
}

// ZM13.
TEST_F(ZnodeMembershipTest, AServiceThatRefusedAllIsAskedAgainAtRandomTimes) {
  for (uint64_t node = 1; node <= 5; ++node) Connected(node);
  Fail(ZnodeCall::kCreate, "-", ZnodeOutcome::kRefused);
  for (const auto& one : memberships_) one->Stand();
  Run(10 * kMilli);
  ASSERT_EQ(service_.CountOf(ZnodeCall::kCreate, "-"), 5u);
  size_t most = 0;
  size_t before = 5;
  for (int i = 0; i < 2'100; ++i) {
    // The problem is the same until that has ended well.
    for (const auto& one : memberships_) {
      ASSERT_TRUE(absl::IsPermissionDenied(one->problem())) << i;
    }
    Run(kMilli);
    const size_t now = service_.CountOf(ZnodeCall::kCreate, "-");
    most = std::max(most, now - std::exchange(before, now));
  }
  EXPECT_GE(before, 10u);
  EXPECT_LT(most, 5u);
}

TEST_F(ZnodeMembershipTest, ARegisterThatIsLateInASessionThatLivesIsWarnedOf) {
  ZnodeMembership& one = Connected(1);
  service_.answers = false;
  const auto request = one.Ask(Above(4));
  EXPECT_EQ(*Finish(*request), BallotBy(5, 1));
  EXPECT_FALSE(request->is_of_register());
  ASSERT_EQ(one.session().state, SessionState::kConnected);
  EXPECT_TRUE(one.problem().ok());
  EXPECT_THAT(one.warning(), HasSubstr("did not answer in time"));
  service_.answers = true;
  const auto next = one.Ask(Above(5));
  ASSERT_TRUE(Finish(*next).ok());
  EXPECT_TRUE(next->is_of_register());
  EXPECT_EQ(one.warning(), "");
  Fail(ZnodeCall::kSet, "/ballot", ZnodeOutcome::kRefused);
  ASSERT_TRUE(Finish(*one.Ask(Above(6))).ok());
  EXPECT_THAT(one.warning(), HasSubstr("refuses node 1 access to /alpheus/"));
}

// ZN2: the watch was set, and the change was made, before the answer arrived.
TEST_F(ZnodeMembershipTest, AChangeThatIsToldOfBeforeTheReadIsSeen) {
  ZnodeMembership& one = Standing(1);
  const std::string folder = PathOf("/logs/orders/candidates");
  const auto put = [&](const std::string& number) {
    service_.Put(folder + "/" + CandidatePrefix(Process(2), 3) + number,
                 EncodeMerits({}), 77);
  };
  put("0000000001");
  service_.Tell(folder);
  // The list is under way; its answer has what is there now.
  service_.answers = false;
  service_.requests.clear();
  Run(5 * kMilli);
  ASSERT_EQ(service_.CountOf(ZnodeCall::kList, "/candidates"), 1u);
  service_.session().Tell(folder);
  service_.answers = true;
  one.Poll();
  put("0000000002");
  Run(20 * kMilli);
  EXPECT_EQ(one.candidates().size(), 3u);
}

// The znodes are on their way already.
TEST_F(ZnodeMembershipTest, WhoChangesItsMindAtOnceLeavesNothing) {
  ZnodeMembership& membership = Connected(1);
  const auto wish = [&](ZnodeCall call, const std::string& suffix) {
    service_.answers = false;
    for (int i = 0; service_.CountOf(call, suffix) == 0; ++i) {
      ASSERT_LT(i, 20) << suffix;
      Run(kMilli);
      service_.answers = service_.CountOf(call, suffix) == 0;
    }
  };
  membership.Stand();
  wish(ZnodeCall::kCreate, "-");
  membership.Withdraw();
  service_.answers = true;
  Run(50 * kMilli);
  EXPECT_THAT(CandidatesInTree(), IsEmpty());
  membership.Register({NodeId(1), 7, "here", Epoch(3)});
  wish(ZnodeCall::kCreate, "/nodes/1-0000000000000007");
  membership.Unregister();
  service_.answers = true;
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PathOf("/nodes/1-0000000000000007")), "none");
  membership.Announce({BallotBy(4, 1), Process(1), "here"});
  wish(ZnodeCall::kCreate, PrimaryName(BallotBy(4, 1)));
  membership.Retract();
  service_.answers = true;
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PrimaryPath(BallotBy(4, 1))), "none");
}

// The outcome of the creation is not known; it took effect.
TEST_F(ZnodeMembershipTest, AWishToStandOfUnknownOutcomeIsNotDoubled) {
  ZnodeMembership& membership = Connected(1);
  bool was_lost = false;
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (was_lost || request.call != ZnodeCall::kCreate) return std::nullopt;
    was_lost = true;
    service_.Put(request.path + "0000000000", request.data, kSession);
    return ZnodeOutcome::kUnknown;
  };
  membership.Stand();
  Run(50 * kMilli);
  EXPECT_TRUE(was_lost);
  EXPECT_EQ(CandidatesInTree().size(), 1u);
  EXPECT_TRUE(IsFirst(membership, Process(1)));
}

// ZM2: the znode of the earlier session is still there when the next begins.
TEST_F(ZnodeMembershipTest, WhatAnEarlierSessionLeftCountsForNothing) {
  ZnodeMembership& membership = Standing(1);
  const std::string earlier = CandidatesInTree().front();
  service_.session().Expire();
  Run(kMilli);
  ASSERT_EQ(membership.session().state, SessionState::kExpired);
  membership.Renew();
  Run(100 * kMilli);
  // It can't be deleted either.
  Fail(ZnodeCall::kDelete, "", ZnodeOutcome::kUnknown);
  service_.session().Connect(200);
  Run(20 * kMilli);
  EXPECT_EQ(CandidatesInTree(), std::vector{earlier});
  EXPECT_FALSE(IsFirst(membership, Process(1)));
  EXPECT_THAT(membership.registrations(), IsEmpty());
  service_.fault = nullptr;
  Run(50 * kMilli);
  ASSERT_EQ(CandidatesInTree().size(), 1u);
  EXPECT_NE(CandidatesInTree().front(), earlier);
  EXPECT_EQ(service_.tree.at(CandidatesInTree().front()).owner, 200u);
  EXPECT_TRUE(IsFirst(membership, Process(1)));
  EXPECT_EQ(membership.registrations().size(), 1u);
  EXPECT_EQ(service_.tree.at(PathOf("/nodes/1-0000000000000007")).owner, 200u);
}

// ZM4.
TEST_F(ZnodeMembershipTest, ASessionThatComesBackAsAnotherHasExpired) {
  ZnodeMembership& membership = Standing(1);
  service_.session().Lose();
  Run(kMilli);
  service_.session().Connect(kSession + 50);
  Run(kMilli);
  EXPECT_EQ(membership.session().state, SessionState::kExpired);
  EXPECT_THAT(membership.problem().message(), HasSubstr("came back"));
  EXPECT_THAT(service_.living, IsEmpty());
}

// ZM5.
TEST_F(ZnodeMembershipTest, ASilentServiceIsInDoubtAfterAThirdOfTheTimeout) {
  ZnodeMembership& membership = Standing(1);
  membership.TakeEvents();
  service_.answers = false;
  // It was heard a while ago.
  Run(kFakeTimeoutNanos / 4);
  EXPECT_EQ(membership.session().state, SessionState::kConnected);
  Run(kFakeTimeoutNanos / 6);
  EXPECT_EQ(membership.session().state, SessionState::kSuspended);
  EXPECT_FALSE(IsFirst(membership, Process(1)));
  EXPECT_THAT(membership.TakeEvents(),
              ElementsAre(MembershipEvent::kSessionChanged));
  // It is heard again: with the same session, behind a sync.
  service_.requests.clear();
  service_.answers = true;
  Run(20 * kMilli);
  EXPECT_EQ(membership.session(),
            (Session{kSession, SessionState::kConnected}));
  EXPECT_EQ(service_.CountOf(ZnodeCall::kSync, ""), 1u);
}

TEST_F(ZnodeMembershipTest, WhoIsIdleAsksOftenEnoughToNoticeSilence) {
  ZnodeMembership& membership = Standing(1);
  membership.TakeEvents();
  for (int i = 0; i < 40; ++i) {
    clock_.now_ns = std::max(membership.NextPoll().at_nanos(), clock_.now_ns);
    membership.Poll();
    clock_.now_ns += kMilli;
    membership.Poll();
  }
  EXPECT_GT(clock_.now_ns, 3 * kFakeTimeoutNanos);
  EXPECT_THAT(membership.TakeEvents(), IsEmpty());
}

// ZM6: its znodes are gone anyway, and a lost connection may never come back.
// Its owner sleeps elsewhere: ZM18.
TEST_F(ZnodeMembershipTest, ItLooksOftenForWhatIsWaitedFor) {
  look_ns_ = kMilli;
  ZnodeMembership& one = New(1);
  EXPECT_EQ(one.NextPoll().at_nanos(), clock_.now_ns + 20 * kMilli);
  {
    const auto request = one.Ask(Above(5));
    EXPECT_EQ(one.NextPoll().at_nanos(), clock_.now_ns + kMilli);
  }
  EXPECT_EQ(one.NextPoll().at_nanos(), clock_.now_ns + 20 * kMilli);
  service_.session().Connect(kSession);
  Run(20 * kMilli);
  // It only keeps its session.
  EXPECT_GT(one.NextPoll().at_nanos(), clock_.now_ns + 20 * kMilli);
}

// ZM5.
TEST_F(ZnodeMembershipTest, ServersThatNeverAnswerAreAProblem) {
  ZnodeMembership& membership = New(1);
  Run(kFakeTimeoutNanos);
  EXPECT_TRUE(membership.problem().ok()) << membership.problem();
  Run(2 * kMilli);
  EXPECT_THAT(membership.problem().message(),
              HasSubstr("no server of ZooKeeper has answered node 1 for"));
  EXPECT_EQ(membership.session().state, SessionState::kConnecting);
  service_.session().Connect(kSession);
  Run(20 * kMilli);
  EXPECT_TRUE(membership.problem().ok()) << membership.problem();
}

// ZM5: while the session may still be there.
TEST_F(ZnodeMembershipTest, ALostSessionIsAProblemAfterItsTimeout) {
  ZnodeMembership& membership = Standing(1);
  service_.session().Lose();
  Run(kFakeTimeoutNanos - 100 * kMilli);
  EXPECT_TRUE(membership.problem().ok()) << membership.problem();
  Run(200 * kMilli);
  EXPECT_TRUE(absl::IsUnavailable(membership.problem()));
  EXPECT_EQ(membership.session().state, SessionState::kSuspended);
  service_.session().Connect(kSession);
  Run(20 * kMilli);
  EXPECT_TRUE(membership.problem().ok()) << membership.problem();
}

TEST_F(ZnodeMembershipTest, ASessionThatIsNotHeardForLongIsGivenUp) {
  ZnodeMembership& membership = Standing(1);
  service_.session().Lose();
  Run(4 * kFakeTimeoutNanos - 100 * kMilli);
  EXPECT_EQ(membership.session().state, SessionState::kSuspended);
  Run(200 * kMilli);
  EXPECT_EQ(membership.session().state, SessionState::kExpired);
  EXPECT_THAT(service_.living, IsEmpty());
}

// ZM6.
TEST_F(ZnodeMembershipTest, SessionsThatFailFollowEachOtherMoreAndMoreSlowly) {
  ZnodeMembership& membership = Standing(1);
  int64_t longest = 0;
  for (int i = 0; i < 12; ++i) {
    service_.session().Expire();
    Run(kMilli);
    ASSERT_EQ(membership.session().state, SessionState::kExpired);
    EXPECT_FALSE(membership.NextPoll().is_set());
    membership.Renew();
    const int64_t pause = membership.NextPoll().at_nanos() - clock_.now_ns;
    const int64_t full = std::min<int64_t>(50 * kMilli << i, 2'000 * kMilli);
    EXPECT_GE(pause, full / 2) << i;
    EXPECT_LE(pause, full) << i;
    longest = std::max(longest, pause);
    EXPECT_THAT(service_.living, IsEmpty());
    Run(pause + kMilli);
    ASSERT_EQ(service_.living.size(), 1u);
  }
  EXPECT_GT(longest, 1'000 * kMilli);
  // One that works begins all over.
  service_.session().Connect(300);
  Run(20 * kMilli);
  service_.session().Expire();
  Run(kMilli);
  membership.Renew();
  EXPECT_LE(membership.NextPoll().at_nanos() - clock_.now_ns, 50 * kMilli);
}

TEST_F(ZnodeMembershipTest, AClientThatCannotBeMadeIsToldAtTheStart) {
  service_.make_fails = absl::UnimplementedError("no client");
  ZnodeMembershipOptions options;
  options.self = Process(1);
  options.log_name = "orders";
  EXPECT_TRUE(absl::IsUnimplemented(
      ZnodeMembership::Start(service_.Maker(), clock_, random_, options)
          .status()));
}

TEST_F(ZnodeMembershipTest, AClientThatCannotBeMadeLaterIsAnExpiredSession) {
  ZnodeMembership& membership = Connected(1);
  service_.session().Expire();
  Run(kMilli);
  membership.Renew();
  service_.make_fails = absl::InternalError("no descriptor");
  Run(60 * kMilli);
  EXPECT_EQ(membership.session().state, SessionState::kExpired);
  EXPECT_EQ(membership.problem(), service_.make_fails);
  EXPECT_TRUE(Finish(*membership.Ask(Above(4))).ok());
}

TEST_F(ZnodeMembershipTest, OnlyAnExpiredSessionIsRenewed) {
  ZnodeMembership& membership = Connected(1);
  EXPECT_DEATH(membership.Renew(), "a session that lives is not renewed");
}

TEST_F(ZnodeMembershipTest, ZnodesThatAreDeletedByHandAreMadeAgain) {
  ZnodeMembership& membership = Standing(1);
  membership.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  const std::string before = CandidatesInTree().front();
  for (const std::string& path : {before, PathOf("/nodes/1-0000000000000007"),
                                  PrimaryPath(BallotBy(4, 1))}) {
    ASSERT_EQ(service_.tree.erase(path), 1u) << path;
    service_.Tell(path);
    service_.Tell(path.substr(0, path.rfind('/')));
    Run(50 * kMilli);
  }
  EXPECT_EQ(CandidatesInTree().size(), 1u);
  EXPECT_NE(service_.At(PathOf("/nodes/1-0000000000000007")), "none");
  EXPECT_NE(service_.At(PrimaryPath(BallotBy(4, 1))), "none");
}

TEST_F(ZnodeMembershipTest, AServiceThatLostAllIsFilledAgain) {
  ZnodeMembership& membership = Standing(1);
  membership.Publish({3, 2, 2, {{NodeId(1), "one:1"}}});
  Run(50 * kMilli);
  const auto full = service_.tree.size();
  service_.tree.clear();
  Run(kFakeTimeoutNanos);  // nobody tells; the next ping sees it
  service_.session().Lose();
  service_.session().Connect(kSession);
  Run(100 * kMilli);
  EXPECT_EQ(service_.tree.size(), full);
  EXPECT_EQ(CandidatesInTree().size(), 1u);
}

// Ballots.

TEST_F(ZnodeMembershipTest, BallotsRiseAboveTheRegisterAndAllPromises) {
  ZnodeMembership& one = Connected(1);
  ZnodeMembership& two = Connected(2);
  const auto first = one.Ask(Above(6));
  EXPECT_EQ(*Finish(*first), BallotBy(7, 1));
  EXPECT_TRUE(first->is_of_register());
  const auto second = two.Ask(Above(2));
  EXPECT_EQ(*Finish(*second), BallotBy(8, 2));
  EXPECT_EQ(service_.At(ballot_path()), EncodeBallot(BallotBy(8, 2)));
}

TEST_F(ZnodeMembershipTest, WhoIsOvertakenTakesANumberAboveTheOther) {
  ZnodeMembership& one = Connected(1);
  ASSERT_TRUE(Finish(*one.Ask(Above(0))).ok());
  bool was_overtaken = false;
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (request.call != ZnodeCall::kSet || was_overtaken) return std::nullopt;
    was_overtaken = true;
    service_.tree[request.path].data = EncodeBallot(BallotBy(9, 2));
    ++service_.tree[request.path].version;
    return std::nullopt;
  };
  EXPECT_EQ(*Finish(*one.Ask(Above(0))), BallotBy(10, 1));
}

// ZM1.
TEST_F(ZnodeMembershipTest, ABallotOfUnknownOutcomeIsConsumed) {
  ZnodeMembership& one = Connected(1);
  bool was_lost = false;
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (request.call != ZnodeCall::kCreate || was_lost) return std::nullopt;
    was_lost = true;
    return ZnodeOutcome::kUnknown;
  };
  const auto request = one.Ask(Above(0));
  EXPECT_EQ(*Finish(*request), BallotBy(2, 1));
  EXPECT_TRUE(request->is_of_register());
  EXPECT_EQ(one.counters().consumed, 1u);
}

// ZM8, ZM1: the number that the register may still get is left out.
TEST_F(ZnodeMembershipTest, ABallotThatIsNotAnsweredIsCountedUpInTime) {
  ZnodeMembership& one = Connected(1);
  ASSERT_EQ(*Finish(*one.Ask(Above(0))), BallotBy(1, 1));
  service_.requests.clear();
  const auto request = one.Ask(Above(0));
  Run(kMilli);  // it was read
  service_.answers = false;
  const int64_t asked_at = clock_.now_ns;
  EXPECT_LE(request->NextPoll().at_nanos(), asked_at + kPatienceNanos);
  const absl::StatusOr<Epoch> ballot = Finish(*request);
  ASSERT_TRUE(ballot.ok()) << ballot.status();
  EXPECT_EQ(*ballot, BallotBy(3, 1));
  EXPECT_FALSE(request->is_of_register());
  EXPECT_LE(clock_.now_ns - asked_at, kPatienceNanos + 2 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kSet, "/ballot"), 1u);
  // The answer comes late, and changes nothing.
  service_.answers = true;
  Run(20 * kMilli);
  EXPECT_EQ(*request->ballot(), BallotBy(3, 1));
  EXPECT_EQ(*Finish(*one.Ask(Above(0))), BallotBy(4, 1));
}

TEST_F(ZnodeMembershipTest, WhoHasWaitedInVainBeforeDoesNotWaitAgain) {
  ZnodeMembership& one = New(1);
  const auto first = one.Ask(Above(5));
  const int64_t asked_at = clock_.now_ns;
  EXPECT_EQ(*Finish(*first), BallotBy(6, 1));
  EXPECT_GE(clock_.now_ns - asked_at, kPatienceNanos);
  const auto second = one.Ask(Above(5));
  EXPECT_EQ(second->Poll(), Polled::kDone);
  EXPECT_EQ(*second->ballot(), BallotBy(7, 1));
  EXPECT_FALSE(second->is_of_register());
}

// A candidate that is polled all the time knows that the service is away.
TEST_F(ZnodeMembershipTest, WhoIsLongWithoutTheServiceDoesNotWaitForIt) {
  ZnodeMembership& one = New(1);
  Run(10 * kPatienceNanos + kMilli);
  EXPECT_EQ(AtOnce(one, 5), BallotBy(6, 1));
  service_.session().Connect(kSession);
  Run(20 * kMilli);
  service_.session().Lose();
  Run(5 * kPatienceNanos);
  // It may come back yet.
  EXPECT_EQ(AtOnce(one, 6), Epoch(0));
  Run(5 * kPatienceNanos + 2 * kMilli);
  EXPECT_EQ(AtOnce(one, 6), BallotBy(7, 1));
  // Then it is waited for again.
  service_.session().Connect(kSession);
  Run(20 * kMilli);
  const auto last = one.Ask(Above(8));
  EXPECT_EQ(last->Poll(), Polled::kIdle);
  EXPECT_EQ(*Finish(*last), BallotBy(9, 1));
  EXPECT_TRUE(last->is_of_register());
}

// An opening polls nothing while it waits for replicas.
TEST_F(ZnodeMembershipTest, TimeWithoutAPollIsNoSilenceOfTheService) {
  ZnodeMembership& one = New(1);
  one.Poll();
  clock_.now_ns += 20 * kPatienceNanos;
  const auto request = one.Ask(Above(5));
  EXPECT_EQ(request->Poll(), Polled::kIdle);
  service_.session().Connect(service_.next_session++);
  EXPECT_EQ(*Finish(*request), BallotBy(6, 1));
  EXPECT_TRUE(request->is_of_register());
}

TEST_F(ZnodeMembershipTest, ASessionThatExpiresLeavesBallotsToThePromises) {
  ZnodeMembership& one = Connected(1);
  service_.answers = false;
  const auto request = one.Ask(Above(5));
  Run(kMilli);
  service_.session().Expire();
  one.Poll();
  EXPECT_EQ(request->Poll(), Polled::kDone);
  EXPECT_EQ(*request->ballot(), BallotBy(6, 1));
}

// A mix of both sources, and the register's return: all of one process rise.
TEST_F(ZnodeMembershipTest, BallotsOfBothSourcesRise) {
  ZnodeMembership& one = Connected(1);
  Epoch last;
  for (int i = 0; i < 12; ++i) {
    service_.answers = i % 3 != 1;
    if (i == 6) service_.tree.erase(ballot_path());
    const auto request = one.Ask({{Epoch(0), last}, kThree});
    const absl::StatusOr<Epoch> ballot = Finish(*request);
    ASSERT_TRUE(ballot.ok()) << ballot.status();
    EXPECT_GT(*ballot, last);
    last = *ballot;
    service_.answers = true;
    Run(20 * kMilli);
  }
  EXPECT_GT(one.counters().of_register, 0u);
  EXPECT_GT(one.counters().of_promises, 0u);
}

// ZM9.
TEST_F(ZnodeMembershipTest, ARegisterThatIsFarAheadIsNotBelieved) {
  ZnodeMembership& one = Connected(1);
  service_.Put(ballot_path(), EncodeBallot(BallotBy(kBallotCounterMax, 2)));
  const auto request = one.Ask(Above(5));
  EXPECT_EQ(*Finish(*request), BallotBy(6, 1));
  EXPECT_FALSE(request->is_of_register());
  EXPECT_THAT(one.problem().message(), HasSubstr("not believed"));
  const uint64_t lead = RegisterLeadMax(5);
  service_.Put(ballot_path(), EncodeBallot(BallotBy(5 + lead, 2)));
  EXPECT_EQ(*Finish(*one.Ask(Above(5))), BallotBy(6 + lead, 1));
  EXPECT_TRUE(one.problem().ok());
}

// ZM9. Each opening is promised the number that the register led it to.
TEST_F(ZnodeMembershipTest, ARegisterThatLiesEachTimeLeavesCounters) {
  ZnodeMembership& one = Connected(1);
  uint64_t promised = 5;
  for (int opening = 0; opening < 600; ++opening) {
    const uint64_t told = promised + RegisterLeadMax(promised);
    service_.Put(ballot_path(), EncodeBallot(BallotBy(told, 2)));
    const absl::StatusOr<Epoch> ballot = Finish(*one.Ask(Above(promised)));
    ASSERT_TRUE(ballot.ok()) << ballot.status();
    promised = BallotCounter(*ballot);
  }
  EXPECT_LT(promised, kBallotCounterMax / 4 * 3);
}

// Near the end of the counters, as its promises are.
TEST_F(ZnodeMembershipTest, TheLastCounterIsGivenOnceAndNothingBehindIt) {
  ZnodeMembership& one = Connected(1);
  ZnodeMembership& two = Connected(2);
  EXPECT_EQ(*Finish(*one.Ask(Above(kBallotCounterMax - 1))),
            BallotBy(kBallotCounterMax, 1));
  for (ZnodeMembership* const membership : {&one, &two}) {
    const auto request = membership->Ask(Above(kBallotCounterMax - 1));
    EXPECT_TRUE(absl::IsFailedPrecondition(Finish(*request).status()));
  }
  EXPECT_EQ(service_.At(ballot_path()),
            EncodeBallot(BallotBy(kBallotCounterMax, 1)));
}

TEST_F(ZnodeMembershipTest, ARegisterThatCannotBeReadIsNotBelieved) {
  ZnodeMembership& one = Connected(1);
  service_.Put(ballot_path(), "17");
  const auto request = one.Ask(Above(5));
  EXPECT_EQ(*Finish(*request), BallotBy(6, 1));
  EXPECT_FALSE(request->is_of_register());
  EXPECT_EQ(service_.At(ballot_path()), "17");
  EXPECT_EQ(one.counters().unreadable, 1u);
}

TEST_F(ZnodeMembershipTest, ARegisterThatMayNotBeWrittenIsLeftAlone) {
  for (const ZnodeCall call : {ZnodeCall::kGet, ZnodeCall::kCreate}) {
    ZnodeMembership& one = Connected(1);
    Fail(call, "/ballot", ZnodeOutcome::kRefused);
    const auto request = one.Ask(Above(5));
    // A number that was to be written is not tried again, here neither.
    EXPECT_EQ(*Finish(*request), BallotBy(call == ZnodeCall::kGet ? 6 : 7, 1));
    EXPECT_FALSE(request->is_of_register());
    service_.fault = nullptr;
  }
}

TEST_F(ZnodeMembershipTest, TooFewPromisesGiveNoBallot) {
  ZnodeMembership& one = Connected(1);
  EXPECT_TRUE(
      absl::IsUnavailable(Finish(*one.Ask({{Epoch(0)}, kThree})).status()));
}

TEST_F(ZnodeMembershipTest, ABallotThatNobodyWaitsForIsAbandoned) {
  ZnodeMembership& one = Connected(1);
  service_.requests.clear();
  one.Ask(Above(0)).reset();
  Run(20 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kCreate, "/ballot"), 0u);
  EXPECT_TRUE(Finish(*one.Ask(Above(0))).ok());
}

// Another layout, and missing rights.

TEST_F(ZnodeMembershipTest, ALayoutOfALaterVersionIsLeftAlone) {
  Connected(1);
  service_.Put(PathOf("/format"), "alpheus format 2\n");
  ZnodeMembership& two = Connected(2);
  service_.requests.clear();
  two.Stand();
  const auto request = two.Ask(Above(5));
  EXPECT_EQ(*Finish(*request), BallotBy(6, 2));
  EXPECT_FALSE(request->is_of_register());
  Run(100 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kCreate, ""), 0u);
  EXPECT_TRUE(absl::IsUnimplemented(two.problem())) << two.problem();
  // It looks again later.
  service_.Put(PathOf("/format"), EncodeFormat());
  Run(2'100 * kMilli);
  EXPECT_EQ(CandidatesInTree().size(), 1u);
}

// ZM10: it is read again while the session goes on.
TEST_F(ZnodeMembershipTest, ALayoutThatChangesIsLeftAlone) {
  ZnodeMembership& one = Standing(1);
  service_.Put(PathOf("/format"), "alpheus format 2\n");
  Run(kFakeTimeoutNanos / 6);
  EXPECT_TRUE(absl::IsUnimplemented(one.problem())) << one.problem();
  service_.requests.clear();
  one.Withdraw();
  one.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(100 * kMilli);
  for (const ZnodeRequest& request : service_.requests) {
    EXPECT_EQ(request.call, ZnodeCall::kGet) << request.path;
  }
}

// ZM10: both programs begin at once, and the other one is faster.
TEST_F(ZnodeMembershipTest, ALayoutThatAnotherProgramMakesMeanwhileIsRead) {
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (request.call == ZnodeCall::kCreate &&
        request.path == PathOf("/format")) {
      service_.Put(request.path, "alpheus format 2\n");
    }
    return std::nullopt;
  };
  ZnodeMembership& one = Connected(1);
  EXPECT_TRUE(absl::IsUnimplemented(one.problem())) << one.problem();
  EXPECT_EQ(service_.CountOf(ZnodeCall::kCreate, "/nodes"), 0u);
  EXPECT_EQ(service_.At(PathOf("/format")), "alpheus format 2\n");
}

TEST_F(ZnodeMembershipTest, WhoMayNotStandTriesAgainLater) {
  ZnodeMembership& one = Connected(1);
  Fail(ZnodeCall::kCreate, "-", ZnodeOutcome::kRefused);
  service_.requests.clear();
  one.Stand();
  Run(1'000 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kCreate, "-"), 1u);
  EXPECT_TRUE(absl::IsPermissionDenied(one.problem()));
  EXPECT_EQ(one.session().state, SessionState::kConnected);
  service_.fault = nullptr;
  Run(1'500 * kMilli);
  EXPECT_EQ(CandidatesInTree().size(), 1u);
}

TEST_F(ZnodeMembershipTest, ARootThatMayNotBeMadeMayBeThere) {
  service_.Put("/alpheus", "");
  Fail(ZnodeCall::kCreate, "/alpheus", ZnodeOutcome::kRefused);
  Connected(1);
  EXPECT_NE(service_.At(PathOf("/format")), "none");
}

TEST_F(ZnodeMembershipTest, ARootThatIsMissingAndMayNotBeMadeIsAProblem) {
  Fail(ZnodeCall::kCreate, "/alpheus", ZnodeOutcome::kRefused);
  ZnodeMembership& one = Connected(1);
  EXPECT_TRUE(absl::IsPermissionDenied(one.problem())) << one.problem();
  EXPECT_THAT(service_.tree, IsEmpty());
  EXPECT_EQ(*Finish(*one.Ask(Above(5))), BallotBy(6, 1));
}

// ZM15. A quota, for example.
TEST_F(ZnodeMembershipTest, AFolderThatMayNotBeMadeIsTriedAgainLater) {
  Fail(ZnodeCall::kCreate, "/nodes", ZnodeOutcome::kRefused);
  ZnodeMembership& one = Standing(1);
  service_.requests.clear();
  Run(500 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kList, "/nodes"), 0u);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kCreate, "/nodes"), 0u);
  EXPECT_TRUE(absl::IsPermissionDenied(one.problem())) << one.problem();
  EXPECT_THAT(one.problem().message(), HasSubstr(PathOf("/nodes")));
  EXPECT_EQ(*Finish(*one.Ask(Above(5))), BallotBy(6, 1));
  service_.fault = nullptr;
  Run(3'000 * kMilli);
  EXPECT_EQ(one.registrations().size(), 1u);
  EXPECT_TRUE(one.problem().ok()) << one.problem();
}

// ZM15: what was deleted by hand and may be made is made at once.
TEST_F(ZnodeMembershipTest, AFolderThatWasRefusedOnceIsForgotten) {
  Fail(ZnodeCall::kCreate, "/nodes", ZnodeOutcome::kRefused);
  ZnodeMembership& one = Standing(1);
  service_.fault = nullptr;
  Run(3'000 * kMilli);
  ASSERT_EQ(one.registrations().size(), 1u);
  service_.tree.erase(PathOf("/logs/orders/candidates"));
  for (const std::string& path : CandidatesInTree()) service_.tree.erase(path);
  service_.Tell(PathOf("/logs/orders/candidates"));
  Run(50 * kMilli);
  EXPECT_EQ(CandidatesInTree().size(), 1u);
}

// ZM14.
TEST_F(ZnodeMembershipTest, WhoOnlyObservesMakesNothing) {
  observes_ = true;
  ZnodeMembership& observer = Connected(1);
  Run(50 * kMilli);
  EXPECT_THAT(service_.tree, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(observer.problem())) << observer.problem();
  EXPECT_FALSE(observer.is_settled());
  observes_ = false;
  Standing(2);
  Run(3'000 * kMilli);
  EXPECT_TRUE(observer.is_settled());
  EXPECT_TRUE(observer.problem().ok()) << observer.problem();
  EXPECT_EQ(observer.candidates().size(), 1u);
  // One that has a wish makes what it needs.
  observer.Stand();
  service_.tree.clear();
  service_.Tell(PathOf("/logs/orders/candidates"));
  Run(500 * kMilli);
  EXPECT_EQ(CandidatesInTree().size(), 2u);
}

// The live primary.

TEST_F(ZnodeMembershipTest, ClientsAreToldOfThePrimary) {
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  const LivePrimary primary{BallotBy(4, 1), Process(1), "here"};
  one.Announce(primary);
  Run(50 * kMilli);
  EXPECT_EQ(two.live_primary(), primary);
  EXPECT_THAT(two.TakeEvents(), Contains(MembershipEvent::kPrimaryChanged));
  one.Retract();
  Run(50 * kMilli);
  EXPECT_EQ(two.live_primary(), std::nullopt);
  EXPECT_EQ(service_.At(PrimaryPath(BallotBy(4, 1))), "none");
}

// Clients are told of it, until they are told of the next.
TEST_F(ZnodeMembershipTest, ALaterEpochOfOnePrimaryTakesThePlaceOfTheEarlier) {
  ZnodeMembership& one = Standing(1);
  one.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  bool was_there = false;
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (request.call == ZnodeCall::kDelete) {
      was_there = service_.At(PrimaryPath(BallotBy(6, 1))) != "none";
    }
    return std::nullopt;
  };
  one.Announce({BallotBy(6, 1), Process(1), "here"});
  Run(50 * kMilli);
  EXPECT_TRUE(was_there);
  EXPECT_EQ(service_.At(PrimaryPath(BallotBy(4, 1))), "none");
  EXPECT_EQ(one.live_primary()->epoch, BallotBy(6, 1));
  // Its address changes.
  one.Announce({BallotBy(6, 1), Process(1), "there"});
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary()->address, "there");
}

// ZM2.
TEST_F(ZnodeMembershipTest, APrimaryOfAnEarlierSessionIsMadeAgain) {
  ZnodeMembership& one = Standing(1);
  one.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  service_.session().Expire();
  Run(kMilli);
  one.Renew();
  Run(100 * kMilli);
  service_.session().Connect(200);
  Run(100 * kMilli);
  EXPECT_EQ(service_.tree.at(PrimaryPath(BallotBy(4, 1))).owner, 200u);
}

// ZM7: another candidate took a ballot and died; nothing but the epoch
// counts.
TEST_F(ZnodeMembershipTest, APrimaryIsAnnouncedOverALowerEpochOnly) {
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  one.Announce({BallotBy(4, 1), Process(1), "one"});
  Run(50 * kMilli);
  service_.Put(ballot_path(), EncodeBallot(BallotBy(9, 3)));
  two.Announce({BallotBy(5, 2), Process(2), "two"});
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary()->epoch, BallotBy(5, 2));
  // The earlier one finds out, and does not come back.
  EXPECT_EQ(service_.CountOf(ZnodeCall::kDelete, PrimaryName(BallotBy(4, 1))),
            1u);
  EXPECT_EQ(service_.At(PrimaryPath(BallotBy(4, 1))), "none");
  EXPECT_EQ(service_.At(PrimaryPath(BallotBy(5, 2))),
            EncodePrimary({BallotBy(5, 2), Process(2), "two"}));
  one.Retract();
  Run(50 * kMilli);
  EXPECT_EQ(two.live_primary()->epoch, BallotBy(5, 2));
}

// ZM7: the later one has not deleted it yet.
TEST_F(ZnodeMembershipTest, APrimaryIsToldOfWhileALowerOneIsLeft) {
  ZnodeMembership& one = Standing(1);
  const LivePrimary later{BallotBy(6, 2), Process(2), "later"};
  service_.Put(PrimaryPath(BallotBy(4, 3)),
               EncodePrimary({BallotBy(4, 3), Process(3), "lower"}), 77);
  service_.Put(PrimaryPath(BallotBy(6, 2)), EncodePrimary(later), 78);
  service_.Tell(PathOf("/logs/orders/live"));
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary(), later);
}

// ZM7: a later primary is there before the request of the loser arrives.
TEST_F(ZnodeMembershipTest, ALateLoserTakesNothingFromALaterPrimary) {
  ZnodeMembership& one = Standing(1);
  const std::string earlier = PrimaryPath(BallotBy(2, 3));
  const std::string later = PrimaryPath(BallotBy(6, 2));
  const LivePrimary winner{BallotBy(6, 2), Process(2), "later"};
  service_.Put(earlier, EncodePrimary({BallotBy(2, 3), Process(3), ""}), 77);
  service_.Tell(PathOf("/logs/orders/live"));
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    const bool is_write = request.call == ZnodeCall::kCreate ||
                          request.call == ZnodeCall::kDelete;
    if (is_write && request.path.starts_with(PathOf("/logs/orders/live/")) &&
        service_.At(later) == "none") {
      // It takes the place of the earlier one, with versions that begin at 0.
      service_.tree.erase(earlier);
      service_.Put(later, EncodePrimary(winner), 78);
      service_.Tell(PathOf("/logs/orders/live"));
    }
    return std::nullopt;
  };
  one.Announce({BallotBy(4, 1), Process(1), "late"});
  Run(100 * kMilli);
  EXPECT_EQ(service_.At(later), EncodePrimary(winner));
  EXPECT_EQ(one.live_primary(), winner);
}

TEST_F(ZnodeMembershipTest, WhatNobodyCanReadIsNoPrimaryAndInNobodysWay) {
  ZnodeMembership& one = Standing(1);
  service_.Put(PathOf("/logs/orders/live/primary"), "me", 77);
  service_.Put(PrimaryPath(BallotBy(8, 2)), "me", 77);
  // Another epoch than its name says, and one that no session owns.
  service_.Put(PrimaryPath(BallotBy(9, 2)),
               EncodePrimary({BallotBy(3, 2), Process(2), "other"}), 77);
  service_.Put(PrimaryPath(BallotBy(10, 2)),
               EncodePrimary({BallotBy(10, 2), Process(2), "stays"}));
  service_.Tell(PathOf("/logs/orders/live"));
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary(), std::nullopt);
  one.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary()->address, "here");
}

// ZM7. It may have children, so that nobody could delete it.
TEST_F(ZnodeMembershipTest, APrimaryLeavesAloneWhatBelongsToNoSession) {
  ZnodeMembership& one = Standing(1);
  const std::string by_hand = PrimaryPath(BallotBy(2, 3));
  service_.Put(by_hand, EncodePrimary({BallotBy(2, 3), Process(3), ""}));
  service_.Tell(PathOf("/logs/orders/live"));
  one.Announce({BallotBy(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  EXPECT_TRUE(one.is_settled());
  EXPECT_EQ(one.live_primary()->address, "here");
  EXPECT_EQ(service_.CountOf(ZnodeCall::kDelete, by_hand), 0u);
}

// ZM17: somebody made it, and a znode in it.
TEST_F(ZnodeMembershipTest, AnEntryThatMayNotBeDeletedLeavesTheRegisterInUse) {
  ZnodeMembership& one = Connected(1);
  const std::string own = "/nodes/1-0000000000000007";
  service_.Put(PathOf(own), "by hand");
  Fail(ZnodeCall::kDelete, own, ZnodeOutcome::kRefused);
  one.Register({NodeId(1), 7, "here", Epoch(3)});
  Run(20 * kMilli);
  EXPECT_TRUE(absl::IsPermissionDenied(one.problem())) << one.problem();
  EXPECT_THAT(one.problem().message(), HasSubstr("delete them by hand"));
  EXPECT_FALSE(one.is_settled());
  const auto request = one.Ask(Above(4));
  EXPECT_EQ(*Finish(*request), BallotBy(5, 1));
  EXPECT_TRUE(request->is_of_register());
  Run(6'000 * kMilli);
  EXPECT_LE(service_.CountOf(ZnodeCall::kDelete, own), 7u);
  // It is put right.
  service_.fault = nullptr;
  Run(2'100 * kMilli);
  EXPECT_TRUE(one.is_settled());
  EXPECT_TRUE(one.problem().ok()) << one.problem();
  EXPECT_EQ(one.registrations().size(), 1u);
}

TEST_F(ZnodeMembershipTest, WhatOthersLeftInFoldersIsNotShown) {
  ZnodeMembership& one = Standing(1);
  const std::string by_hand = PathOf("/logs/orders/candidates/");
  service_.Put(by_hand + "me-first", EncodeMerits({}), 77);
  // No session owns it.
  service_.Put(by_hand + CandidatePrefix(Process(2), 3) + "0000000009",
               EncodeMerits({Lsn(99), 9}));
  service_.Put(by_hand + CandidatePrefix(Process(3), 3) + "0000000010", "?",
               77);
  service_.Put(PathOf("/nodes/2-0000000000000007"), "?", 77);
  service_.Put(PathOf("/nodes/3-0000000000000007"),
               EncodeNode({"another", {NodeId(3), 7, "", Epoch(0)}}), 77);
  service_.Tell(PathOf("/logs/orders/candidates"));
  service_.Tell(PathOf("/nodes"));
  Run(50 * kMilli);
  EXPECT_EQ(one.candidates().size(), 1u);
  EXPECT_EQ(one.registrations().size(), 1u);
  EXPECT_EQ(one.counters().unreadable, 4u);
}

// The copy of the list of members.

TEST_F(ZnodeMembershipTest, TheListOfMembersOnlyGrowsNewer) {
  ZnodeMembership& one = Connected(1);
  const MembersCopy older{3, 2, 2, {{NodeId(1), "one:1"}}};
  const MembersCopy newer{4, 2, 2, {{NodeId(1), "one:1"}, {NodeId(2), "b:2"}}};
  one.Publish(older);
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PathOf("/members")), EncodeMembers(older));
  one.Publish(newer);
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PathOf("/members")), EncodeMembers(newer));
  service_.requests.clear();
  Connected(2).Publish(older);
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PathOf("/members")), EncodeMembers(newer));
  EXPECT_EQ(service_.CountOf(ZnodeCall::kSet, "/members"), 0u);
}

TEST_F(ZnodeMembershipTest, AListOfMembersThatIsDeletedIsWrittenAgain) {
  ZnodeMembership& one = Connected(1);
  const MembersCopy members{3, 2, 2, {{NodeId(1), "one:1"}}};
  one.Publish(members);
  Run(50 * kMilli);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(service_.tree.erase(PathOf("/members")), 1u) << i;
    service_.Tell(PathOf("/members"));
    Run(50 * kMilli);
    EXPECT_EQ(service_.At(PathOf("/members")), EncodeMembers(members)) << i;
  }
  // Then it is left alone.
  service_.requests.clear();
  Run(500 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kGet, "/members"), 0u);
}

TEST_F(ZnodeMembershipTest, AListOfMembersThatMayNotBeWrittenIsLeftAlone) {
  ZnodeMembership& one = Connected(1);
  Fail(ZnodeCall::kCreate, "/members", ZnodeOutcome::kRefused);
  one.Publish({3, 2, 2, {}});
  Run(50 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kCreate, "/members"), 1u);
  EXPECT_TRUE(one.problem().ok());
}

// It reads what it wrote, and would write it again without end.
TEST_F(ZnodeMembershipTest, AListOfMembersThatNobodyCanReadIsWrittenOnce) {
  ZnodeMembership& one = Connected(1);
  one.Publish({});
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PathOf("/members")), EncodeMembers({}));
  EXPECT_EQ(service_.CountOf(ZnodeCall::kSet, "/members"), 0u);
  EXPECT_TRUE(one.is_settled());
}

// Each call fails, by its ordinal.

// A fault of a request, and of its connection and session.
struct CallFault {
  const char* name;
  bool takes_effect = false;
  ZnodeOutcome outcome = ZnodeOutcome::kUnknown;
  bool loses_connection = false;
  bool ends_session = false;
  // It takes effect only when the next request has come.
  bool is_late = false;
  // How many requests in a row it strikes.
  size_t times = 1;
  // How many sessions can't be made after it.
  uint64_t unmade = 0;
};

std::ostream& operator<<(std::ostream& out, const CallFault& fault) {
  return out << fault.name;
}

class ZnodeMembershipFaultTest
    : public ZnodeMembershipTest,
      public ::testing::WithParamInterface<CallFault> {
 protected:
  // Time passes; a connection that is lost comes back, and so does a session.
  void Go(int64_t ns) {
    ZnodeMembership& one = *memberships_[0];
    for (const int64_t until = clock_.now_ns + ns; clock_.now_ns < until;) {
      if (std::exchange(is_to_lose_, false)) {
        ASSERT_FALSE(service_.living.empty());
        LoseSession(service_.session());
      }
      Run(kMilli);
      if (service_.made >= makes_from_) service_.make_fails = absl::OkStatus();
      if (one.session().state == SessionState::kExpired) one.Renew();
      if (service_.living.empty()) continue;
      FakeZnodes& session = service_.session();
      if (session.state() == SessionState::kConnecting) {
        session.Connect(service_.next_session++);
      } else if (session.state() == SessionState::kSuspended) {
        session.Connect(session.session_id());
      }
    }
  }
  void LoseSession(FakeZnodes& session) {
    if (!GetParam().ends_session) return session.Lose();
    service_.EndSession(session.session_id());
    session.Expire();
    if (GetParam().unmade == 0) return;
    makes_from_ = service_.made + GetParam().unmade;
    service_.make_fails = absl::InternalError("no more memory");
  }

  // The fault strikes from that call on.
  void FailFrom(size_t ordinal) {
    calls_ = 0;
    service_.fault =
        [this,
         ordinal](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
      if (is_unseen_) return std::nullopt;
      const std::optional<ZnodeRequest> late =
          std::exchange(late_, std::nullopt);
      if (late) CarryUnseen(*late);
      const size_t call = calls_++;
      const bool is_struck =
          call >= ordinal && call - ordinal < GetParam().times;
      NoteNumber(request, is_struck);
      if (!is_struck) return std::nullopt;
      Strike(request);
      return GetParam().outcome;
    };
  }
  void Strike(const ZnodeRequest& request) {
    is_to_lose_ = GetParam().loses_connection;
    if (GetParam().is_late) {
      late_ = request;
    } else if (GetParam().takes_effect) {
      CarryUnseen(request);
    }
    TakeByAnother();
  }
  void CarryUnseen(const ZnodeRequest& request) {
    ZnodeEvent unseen;
    is_unseen_ = true;
    service_.Carry(request, service_.session().session_id(), unseen);
    is_unseen_ = false;
  }

  // ZM1: no number is tried twice.
  void NoteNumber(const ZnodeRequest& request, bool is_struck) {
    if (request.path != ballot_path() || request.call == ZnodeCall::kGet) {
      return;
    }
    EXPECT_TRUE(tried_.insert(request.data).second) << request.data;
    if (is_struck) burnt_.insert(request.data);
  }
  // Another process takes the next number of the register: that of the request
  // that was struck, if that took no effect.
  void TakeByAnother() {
    const auto found = service_.tree.find(ballot_path());
    if (found == service_.tree.end()) return;
    const absl::StatusOr<Epoch> last = DecodeBallot(found->second.data);
    ASSERT_TRUE(last.ok()) << last.status();
    const Epoch next = BallotBy(BallotCounter(*last) + 1, 3);
    found->second.data = EncodeBallot(next);
    ++found->second.version;
    EXPECT_TRUE(counters_.insert(BallotCounter(next)).second);
  }
  // Asks for a ballot, as an opening does. It is a new one (MB1 to MB3).
  void TakeBallot(bool& is_of_register) {
    ZnodeMembership& one = *memberships_[0];
    const auto request = one.Ask({{Epoch(0), last_}, kThree});
    for (int i = 0; i < 200 && request->Poll() != Polled::kDone; ++i) {
      Go(kMilli);
    }
    ASSERT_EQ(request->Poll(), Polled::kDone);
    ASSERT_TRUE(request->ballot().ok()) << request->ballot().status();
    const Epoch ballot = *request->ballot();
    EXPECT_GT(ballot, last_);
    EXPECT_FALSE(burnt_.contains(EncodeBallot(ballot)));
    is_of_register = request->is_of_register();
    if (is_of_register) {
      // RB2.
      EXPECT_EQ(service_.At(ballot_path()), EncodeBallot(ballot));
      EXPECT_TRUE(counters_.insert(BallotCounter(ballot)).second);
    }
    last_ = ballot;
  }

  // All that a process does, with three openings, and then a rest, which has
  // only calls that keep the session. `calls`: how many there were before, at
  // most.
  void Live(size_t& calls) {
    ZnodeMembership& one = New(1);
    one.Register({NodeId(1), 7, "here", Epoch(3)});
    one.Stand();
    one.Describe({Lsn(1), 0});
    last_ = BallotBy(4, 3);
    bool is_of_register = false;
    for (int opening = 0; opening < 3; ++opening) {
      ASSERT_NO_FATAL_FAILURE(TakeBallot(is_of_register));
      announced_ = {last_, Process(1), "here"};
      one.Announce(announced_);
      one.Publish({3, 2, 2, {{NodeId(1), "one:1"}}});
      Go(100 * kMilli);
    }
    calls = std::max(calls, calls_);
    // A service that is avoided is left alone for 2 s, each time.
    const int rest = GetParam().times == 1 ? 100 : 500;
    for (int i = 0; i < rest; ++i) {
      Go(3 * kMilli);
      clock_.now_ns += 25 * kMilli;
    }
  }
  void ExpectAllIsThere() {
    ZnodeMembership& one = *memberships_[0];
    const uint64_t session = one.session().id;
    EXPECT_EQ(one.session().state, SessionState::kConnected) << one.problem();
    ASSERT_EQ(CandidatesInTree().size(), 1u);
    EXPECT_EQ(service_.tree.at(CandidatesInTree().front()).owner, session);
    EXPECT_TRUE(IsFirst(one, Process(1)));
    EXPECT_EQ(one.candidates().front().merits, (Merits{Lsn(1), 0}));
    ASSERT_EQ(one.registrations().size(), 1u);
    EXPECT_EQ(service_.tree[PathOf("/nodes/1-0000000000000007")].owner,
              session);
    EXPECT_EQ(one.live_primary(), announced_);
    const std::string primary = PrimaryPath(announced_.epoch);
    EXPECT_EQ(service_.At(primary), EncodePrimary(announced_));
    EXPECT_EQ(service_.tree[primary].owner, session);
    EXPECT_NE(service_.At(PathOf("/members")), "none");
    EXPECT_TRUE(one.problem().ok()) << one.problem();
  }

  size_t calls_ = 0;
  bool is_to_lose_ = false;
  bool is_unseen_ = false;  // what is carried out now is no call
  std::optional<ZnodeRequest> late_;
  uint64_t makes_from_ = 0;  // so many sessions were tried to be made
  // Contents of the register that were to be written, and were struck.
  std::set<std::string> tried_;
  std::set<std::string> burnt_;
  std::set<uint64_t> counters_;  // of ballots that the register gave
  Epoch last_;
  LivePrimary announced_;
};

// Nothing is promised on a number that may be burnt, no number is given twice,
// and the next opening has the register again.
TEST_P(ZnodeMembershipFaultTest, WhicheverCallItStrikesAllIsThereInTheEnd) {
  size_t calls = 0;
  const auto live = [&](size_t ordinal) {
    SCOPED_TRACE(ordinal);
    memberships_.clear();
    service_.tree.clear();
    service_.requests.clear();
    is_to_lose_ = false;
    late_.reset();
    makes_from_ = 0;
    tried_.clear();
    burnt_.clear();
    counters_.clear();
    FailFrom(ordinal);
    ASSERT_NO_FATAL_FAILURE(Live(calls));
    ExpectAllIsThere();
    bool is_of_register = false;
    ASSERT_NO_FATAL_FAILURE(TakeBallot(is_of_register));
    EXPECT_TRUE(is_of_register);
  };
  live(/*ordinal=*/1'000'000);  // none
  EXPECT_GT(calls, 40u);
  for (size_t ordinal = 0; ordinal < calls && !HasFailure(); ++ordinal) {
    live(ordinal);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, ZnodeMembershipFaultTest,
    ::testing::Values(
        CallFault{.name = "Unknown"},
        CallFault{.name = "UnknownAndDone", .takes_effect = true},
        CallFault{.name = "UnknownAndDoneLater", .is_late = true},
        CallFault{.name = "UnknownOften", .times = 5},
        CallFault{.name = "Lost", .loses_connection = true},
        CallFault{.name = "LostAndDone",
                  .takes_effect = true,
                  .loses_connection = true},
        CallFault{
            .name = "LostAndDoneLater",
            .loses_connection = true,
            .is_late = true,
        },
        CallFault{.name = "LostOften", .loses_connection = true, .times = 5},
        CallFault{
            .name = "Expired", .loses_connection = true, .ends_session = true},
        CallFault{.name = "ExpiredAndDone",
                  .takes_effect = true,
                  .loses_connection = true,
                  .ends_session = true},
        CallFault{.name = "ExpiredOften",
                  .loses_connection = true,
                  .ends_session = true,
                  .times = 5},
        CallFault{.name = "ExpiredAndNotMade",
                  .loses_connection = true,
                  .ends_session = true,
                  .unmade = 3},
        CallFault{.name = "Refused", .outcome = ZnodeOutcome::kRefused},
        CallFault{.name = "RefusedOften",
                  .outcome = ZnodeOutcome::kRefused,
                  .times = 5},
        CallFault{.name = "Overloaded", .outcome = ZnodeOutcome::kOverloaded},
        CallFault{.name = "OverloadedOften",
                  .outcome = ZnodeOutcome::kOverloaded,
                  .times = 5},
        CallFault{.name = "None", .outcome = ZnodeOutcome::kNone},
        CallFault{
            .name = "NoneOften", .outcome = ZnodeOutcome::kNone, .times = 5},
        CallFault{.name = "Exists", .outcome = ZnodeOutcome::kExists},
        CallFault{.name = "OtherVersion",
                  .outcome = ZnodeOutcome::kOtherVersion}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace alpheus::quorum
