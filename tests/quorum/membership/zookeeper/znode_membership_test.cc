// SPDX-License-Identifier: Apache-2.0
// Does a membership by znodes keep its rules (ZM1 to ZM10), whatever a service
// answers, loses or says?
#include "quorum/membership/zookeeper/znode_membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "log/base/random.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "tests/quorum/membership/zookeeper/fake_znodes.h"

namespace alpheus::quorum {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr QuorumSizes kThree{3, 2, 2};
constexpr Uuid kCluster{0xc1, 0x57e4};
constexpr int64_t kPatienceNanos = 100 * kMilli;

PrimaryId Process(uint64_t node) { return {NodeId(node), node << 48 | 7}; }
Epoch BallotOf(uint64_t counter, uint64_t node) {
  return PackBallot({counter, Process(node)});
}
BallotQuestion Above(uint64_t counter) {
  return {{Epoch(0), counter == 0 ? Epoch(0) : BallotOf(counter, 3)}, kThree};
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
      for (const auto& membership : memberships_) membership->Poll();
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
  ASSERT_EQ(*Finish(*one.Ask(Above(0))), BallotOf(1, 1));
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
  EXPECT_EQ(*Finish(*request), BallotOf(3, 1));
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
  two.Describe({Lsn(9), 0, BallotOf(4, 1)});
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
  membership.Announce({BallotOf(4, 1), Process(1), "here"});
  wish(ZnodeCall::kCreate, PrimaryName(BallotOf(4, 1)));
  membership.Retract();
  service_.answers = true;
  Run(50 * kMilli);
  EXPECT_EQ(service_.At(PrimaryPath(BallotOf(4, 1))), "none");
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
  membership.Announce({BallotOf(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  const std::string before = CandidatesInTree().front();
  for (const std::string& path : {before, PathOf("/nodes/1-0000000000000007"),
                                  PrimaryPath(BallotOf(4, 1))}) {
    ASSERT_EQ(service_.tree.erase(path), 1u) << path;
    service_.Tell(path);
    service_.Tell(path.substr(0, path.rfind('/')));
    Run(50 * kMilli);
  }
  EXPECT_EQ(CandidatesInTree().size(), 1u);
  EXPECT_NE(service_.At(PathOf("/nodes/1-0000000000000007")), "none");
  EXPECT_NE(service_.At(PrimaryPath(BallotOf(4, 1))), "none");
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
  EXPECT_EQ(*Finish(*first), BallotOf(7, 1));
  EXPECT_TRUE(first->is_of_register());
  const auto second = two.Ask(Above(2));
  EXPECT_EQ(*Finish(*second), BallotOf(8, 2));
  EXPECT_EQ(service_.At(ballot_path()), EncodeBallot(BallotOf(8, 2)));
}

TEST_F(ZnodeMembershipTest, WhoIsOvertakenTakesANumberAboveTheOther) {
  ZnodeMembership& one = Connected(1);
  ASSERT_TRUE(Finish(*one.Ask(Above(0))).ok());
  bool was_overtaken = false;
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (request.call != ZnodeCall::kSet || was_overtaken) return std::nullopt;
    was_overtaken = true;
    service_.tree[request.path].data = EncodeBallot(BallotOf(9, 2));
    ++service_.tree[request.path].version;
    return std::nullopt;
  };
  EXPECT_EQ(*Finish(*one.Ask(Above(0))), BallotOf(10, 1));
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
  EXPECT_EQ(*Finish(*request), BallotOf(2, 1));
  EXPECT_TRUE(request->is_of_register());
  EXPECT_EQ(one.counters().consumed, 1u);
}

// ZM8, ZM1: the number that the register may still get is left out.
TEST_F(ZnodeMembershipTest, ABallotThatIsNotAnsweredIsCountedUpInTime) {
  ZnodeMembership& one = Connected(1);
  ASSERT_EQ(*Finish(*one.Ask(Above(0))), BallotOf(1, 1));
  service_.requests.clear();
  const auto request = one.Ask(Above(0));
  Run(kMilli);  // it was read
  service_.answers = false;
  const int64_t asked_at = clock_.now_ns;
  EXPECT_LE(request->NextPoll().at_nanos(), asked_at + kPatienceNanos);
  const absl::StatusOr<Epoch> ballot = Finish(*request);
  ASSERT_TRUE(ballot.ok()) << ballot.status();
  EXPECT_EQ(*ballot, BallotOf(3, 1));
  EXPECT_FALSE(request->is_of_register());
  EXPECT_LE(clock_.now_ns - asked_at, kPatienceNanos + 2 * kMilli);
  EXPECT_EQ(service_.CountOf(ZnodeCall::kSet, "/ballot"), 1u);
  // The answer comes late, and changes nothing.
  service_.answers = true;
  Run(20 * kMilli);
  EXPECT_EQ(*request->ballot(), BallotOf(3, 1));
  EXPECT_EQ(*Finish(*one.Ask(Above(0))), BallotOf(4, 1));
}

TEST_F(ZnodeMembershipTest, WhoHasWaitedInVainBeforeDoesNotWaitAgain) {
  ZnodeMembership& one = New(1);
  const auto first = one.Ask(Above(5));
  const int64_t asked_at = clock_.now_ns;
  EXPECT_EQ(*Finish(*first), BallotOf(6, 1));
  EXPECT_GE(clock_.now_ns - asked_at, kPatienceNanos);
  const auto second = one.Ask(Above(5));
  EXPECT_EQ(second->Poll(), Polled::kDone);
  EXPECT_EQ(*second->ballot(), BallotOf(7, 1));
  EXPECT_FALSE(second->is_of_register());
}

// An opening polls nothing while it waits for replicas.
TEST_F(ZnodeMembershipTest, TimeWithoutAPollIsNoSilenceOfTheService) {
  ZnodeMembership& one = New(1);
  one.Poll();
  clock_.now_ns += 5 * kPatienceNanos;
  const auto request = one.Ask(Above(5));
  EXPECT_EQ(request->Poll(), Polled::kIdle);
  service_.session().Connect(service_.next_session++);
  EXPECT_EQ(*Finish(*request), BallotOf(6, 1));
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
  EXPECT_EQ(*request->ballot(), BallotOf(6, 1));
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
  service_.Put(ballot_path(), EncodeBallot(BallotOf(kBallotCounterMax, 2)));
  const auto request = one.Ask(Above(5));
  EXPECT_EQ(*Finish(*request), BallotOf(6, 1));
  EXPECT_FALSE(request->is_of_register());
  EXPECT_THAT(one.problem().message(), HasSubstr("not believed"));
  service_.Put(ballot_path(), EncodeBallot(BallotOf(5 + kRegisterLeadMax, 2)));
  EXPECT_EQ(*Finish(*one.Ask(Above(5))), BallotOf(6 + kRegisterLeadMax, 1));
  EXPECT_TRUE(one.problem().ok());
}

// Near the end of the counters, as its promises are.
TEST_F(ZnodeMembershipTest, TheLastCounterIsGivenOnceAndNothingBehindIt) {
  ZnodeMembership& one = Connected(1);
  ZnodeMembership& two = Connected(2);
  EXPECT_EQ(*Finish(*one.Ask(Above(kBallotCounterMax - 1))),
            BallotOf(kBallotCounterMax, 1));
  for (ZnodeMembership* const membership : {&one, &two}) {
    const auto request = membership->Ask(Above(kBallotCounterMax - 1));
    EXPECT_TRUE(absl::IsFailedPrecondition(Finish(*request).status()));
  }
  EXPECT_EQ(service_.At(ballot_path()),
            EncodeBallot(BallotOf(kBallotCounterMax, 1)));
}

TEST_F(ZnodeMembershipTest, ARegisterThatCannotBeReadIsNotBelieved) {
  ZnodeMembership& one = Connected(1);
  service_.Put(ballot_path(), "17");
  const auto request = one.Ask(Above(5));
  EXPECT_EQ(*Finish(*request), BallotOf(6, 1));
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
    EXPECT_EQ(*Finish(*request), BallotOf(call == ZnodeCall::kGet ? 6 : 7, 1));
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
  EXPECT_EQ(*Finish(*request), BallotOf(6, 2));
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
  one.Announce({BallotOf(4, 1), Process(1), "here"});
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
  EXPECT_EQ(*Finish(*one.Ask(Above(5))), BallotOf(6, 1));
}

// The live primary.

TEST_F(ZnodeMembershipTest, ClientsAreToldOfThePrimary) {
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  const LivePrimary primary{BallotOf(4, 1), Process(1), "here"};
  one.Announce(primary);
  Run(50 * kMilli);
  EXPECT_EQ(two.live_primary(), primary);
  EXPECT_THAT(two.TakeEvents(), Contains(MembershipEvent::kPrimaryChanged));
  one.Retract();
  Run(50 * kMilli);
  EXPECT_EQ(two.live_primary(), std::nullopt);
  EXPECT_EQ(service_.At(PrimaryPath(BallotOf(4, 1))), "none");
}

// Clients are told of it, until they are told of the next.
TEST_F(ZnodeMembershipTest, ALaterEpochOfOnePrimaryTakesThePlaceOfTheEarlier) {
  ZnodeMembership& one = Standing(1);
  one.Announce({BallotOf(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  bool was_there = false;
  service_.fault =
      [&](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
    if (request.call == ZnodeCall::kDelete) {
      was_there = service_.At(PrimaryPath(BallotOf(6, 1))) != "none";
    }
    return std::nullopt;
  };
  one.Announce({BallotOf(6, 1), Process(1), "here"});
  Run(50 * kMilli);
  EXPECT_TRUE(was_there);
  EXPECT_EQ(service_.At(PrimaryPath(BallotOf(4, 1))), "none");
  EXPECT_EQ(one.live_primary()->epoch, BallotOf(6, 1));
  // Its address changes.
  one.Announce({BallotOf(6, 1), Process(1), "there"});
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary()->address, "there");
}

// ZM2.
TEST_F(ZnodeMembershipTest, APrimaryOfAnEarlierSessionIsMadeAgain) {
  ZnodeMembership& one = Standing(1);
  one.Announce({BallotOf(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  service_.session().Expire();
  Run(kMilli);
  one.Renew();
  Run(100 * kMilli);
  service_.session().Connect(200);
  Run(100 * kMilli);
  EXPECT_EQ(service_.tree.at(PrimaryPath(BallotOf(4, 1))).owner, 200u);
}

// ZM7: another candidate took a ballot and died; nothing but the epoch
// counts.
TEST_F(ZnodeMembershipTest, APrimaryIsAnnouncedOverALowerEpochOnly) {
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  one.Announce({BallotOf(4, 1), Process(1), "one"});
  Run(50 * kMilli);
  service_.Put(ballot_path(), EncodeBallot(BallotOf(9, 3)));
  two.Announce({BallotOf(5, 2), Process(2), "two"});
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary()->epoch, BallotOf(5, 2));
  // The earlier one finds out, and does not come back.
  EXPECT_EQ(service_.CountOf(ZnodeCall::kDelete, PrimaryName(BallotOf(4, 1))),
            1u);
  EXPECT_EQ(service_.At(PrimaryPath(BallotOf(4, 1))), "none");
  EXPECT_EQ(service_.At(PrimaryPath(BallotOf(5, 2))),
            EncodePrimary({BallotOf(5, 2), Process(2), "two"}));
  one.Retract();
  Run(50 * kMilli);
  EXPECT_EQ(two.live_primary()->epoch, BallotOf(5, 2));
}

// ZM7: the later one has not deleted it yet.
TEST_F(ZnodeMembershipTest, APrimaryIsToldOfWhileALowerOneIsLeft) {
  ZnodeMembership& one = Standing(1);
  const LivePrimary later{BallotOf(6, 2), Process(2), "later"};
  service_.Put(PrimaryPath(BallotOf(4, 3)),
               EncodePrimary({BallotOf(4, 3), Process(3), "lower"}), 77);
  service_.Put(PrimaryPath(BallotOf(6, 2)), EncodePrimary(later), 78);
  service_.Tell(PathOf("/logs/orders/live"));
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary(), later);
}

// ZM7: a later primary is there before the request of the loser arrives.
TEST_F(ZnodeMembershipTest, ALateLoserTakesNothingFromALaterPrimary) {
  ZnodeMembership& one = Standing(1);
  const std::string earlier = PrimaryPath(BallotOf(2, 3));
  const std::string later = PrimaryPath(BallotOf(6, 2));
  const LivePrimary winner{BallotOf(6, 2), Process(2), "later"};
  service_.Put(earlier, EncodePrimary({BallotOf(2, 3), Process(3), ""}), 77);
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
  one.Announce({BallotOf(4, 1), Process(1), "late"});
  Run(100 * kMilli);
  EXPECT_EQ(service_.At(later), EncodePrimary(winner));
  EXPECT_EQ(one.live_primary(), winner);
}

TEST_F(ZnodeMembershipTest, WhatNobodyCanReadIsNoPrimaryAndInNobodysWay) {
  ZnodeMembership& one = Standing(1);
  service_.Put(PathOf("/logs/orders/live/primary"), "me", 77);
  service_.Put(PrimaryPath(BallotOf(8, 2)), "me", 77);
  // Another epoch than its name says, and one that no session owns.
  service_.Put(PrimaryPath(BallotOf(9, 2)),
               EncodePrimary({BallotOf(3, 2), Process(2), "other"}), 77);
  service_.Put(PrimaryPath(BallotOf(10, 2)),
               EncodePrimary({BallotOf(10, 2), Process(2), "stays"}));
  service_.Tell(PathOf("/logs/orders/live"));
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary(), std::nullopt);
  one.Announce({BallotOf(4, 1), Process(1), "here"});
  Run(50 * kMilli);
  EXPECT_EQ(one.live_primary()->address, "here");
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

// Each call fails once, by its ordinal.

// A fault of a request, and of its connection and session.
struct CallFault {
  const char* name;
  bool takes_effect = false;
  ZnodeOutcome outcome = ZnodeOutcome::kUnknown;
  bool loses_connection = false;
  bool ends_session = false;
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
        FakeZnodes& session = service_.session();
        if (!GetParam().ends_session) {
          session.Lose();
        } else {
          service_.EndSession(session.session_id());
          session.Expire();
        }
      }
      Run(kMilli);
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
  void FailCall(size_t ordinal) {
    calls_ = 0;
    service_.fault =
        [this,
         ordinal](const ZnodeRequest& request) -> std::optional<ZnodeOutcome> {
      if (calls_++ != ordinal) return std::nullopt;
      is_to_lose_ = GetParam().loses_connection;
      if (GetParam().takes_effect) {
        ZnodeEvent unseen;
        service_.Carry(request, service_.session().session_id(), unseen);
      }
      return GetParam().outcome;
    };
  }
  // All that a process does, with three openings, and then a rest, which has
  // only calls that keep the session. `calls`: how many there were before.
  void Live(size_t& calls) {
    ZnodeMembership& one = New(1);
    one.Register({NodeId(1), 7, "here", Epoch(3)});
    one.Stand();
    one.Describe({Lsn(1), 0});
    Epoch last = BallotOf(4, 3);
    for (int opening = 0; opening < 3; ++opening) {
      const auto request = one.Ask({{Epoch(0), last}, kThree});
      for (int i = 0; i < 200 && request->Poll() != Polled::kDone; ++i) {
        Go(kMilli);
      }
      ASSERT_EQ(request->Poll(), Polled::kDone);
      ASSERT_TRUE(request->ballot().ok()) << request->ballot().status();
      EXPECT_GT(*request->ballot(), last);
      last = *request->ballot();
      announced_ = {last, Process(1), "here"};
      one.Announce(announced_);
      one.Publish({3, 2, 2, {{NodeId(1), "one:1"}}});
      Go(100 * kMilli);
    }
    calls = calls_;
    for (int i = 0; i < 100; ++i) {
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
  LivePrimary announced_;
};

TEST_P(ZnodeMembershipFaultTest, WhicheverCallItStrikesAllIsThereInTheEnd) {
  size_t calls = 1;
  size_t ordinal = 0;
  for (; ordinal < calls && !HasFailure(); ++ordinal) {
    SCOPED_TRACE(ordinal);
    memberships_.clear();
    service_.tree.clear();
    service_.requests.clear();
    is_to_lose_ = false;
    FailCall(ordinal);
    Live(calls);
    ExpectAllIsThere();
  }
  EXPECT_GT(ordinal, 40u);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, ZnodeMembershipFaultTest,
    ::testing::Values(
        CallFault{"Unknown"},
        CallFault{"UnknownAndDone", /*takes_effect=*/true},
        CallFault{"Lost", false, ZnodeOutcome::kUnknown,
                  /*loses_connection=*/true},
        CallFault{"LostAndDone", true, ZnodeOutcome::kUnknown, true},
        CallFault{"Expired", false, ZnodeOutcome::kUnknown, true,
                  /*ends_session=*/true},
        CallFault{"ExpiredAndDone", true, ZnodeOutcome::kUnknown, true, true},
        CallFault{"Refused", false, ZnodeOutcome::kRefused},
        CallFault{"None", false, ZnodeOutcome::kNone},
        CallFault{"Exists", false, ZnodeOutcome::kExists},
        CallFault{"OtherVersion", false, ZnodeOutcome::kOtherVersion}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace alpheus::quorum
