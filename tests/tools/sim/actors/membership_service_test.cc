// SPDX-License-Identifier: Apache-2.0
// Is the simulated membership service as good as a real one, and no better?
#include "tools/sim/actors/membership_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "quorum/membership/zookeeper/znodes.h"
#include "tests/tools/sim/actors/membership_clients.h"

namespace alpheus::sim {

using quorum::BallotRegister;
using quorum::ZnodeCall;
using quorum::ZnodeLife;

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Event = MembershipMessage::Kind;
using Outcome = quorum::ZnodeOutcome;

// Folders of the tests, and the register.
constexpr char kCandidates[] = "/c";
constexpr char kRegister[] = "/ballot";

// A process that has no client, but says each word itself.
struct Speaker {
  int machine = 0;
  quorum::PrimaryId process;
  uint64_t session = 0;
  std::shared_ptr<MembershipMailbox> mailbox;
};

class MembershipServiceTest : public MembershipTest {
 protected:
  using MembershipTest::MembershipTest;

  void Send(const Speaker& from, MembershipRequest request) {
    request.number = ++number_;
    request.session = from.session;
    request.process = from.process;
    request.call.number = number_;
    service_.Send(from.machine, from.mailbox, std::move(request));
  }
  void Send(const Speaker& from, ZnodeCall call, const std::string& path) {
    MembershipRequest request;
    request.call.call = call;
    request.call.path = path;
    request.call.watch = true;
    request.call.life = ZnodeLife::kEphemeral;
    Send(from, request);
  }
  // The answer to what was sent last, if it comes in time.
  std::optional<MembershipMessage> Answer(const Speaker& to) {
    network_.Run(kAnswerNanos);
    auto& messages = to.mailbox->messages;
    const auto found =
        std::ranges::find(messages, number_, &MembershipMessage::number);
    if (found == messages.end()) return std::nullopt;
    MembershipMessage answer = *found;
    messages.erase(found);
    return answer;
  }
  std::optional<MembershipMessage> Ask(const Speaker& from, ZnodeCall call,
                                       const std::string& path = kCandidates) {
    Send(from, call, path);
    return Answer(from);
  }
  std::optional<MembershipMessage> AskToConnect(const Speaker& from) {
    MembershipRequest request;
    request.kind = MembershipRequest::Kind::kConnect;
    Send(from, request);
    return Answer(from);
  }
  std::optional<Outcome> OutcomeOf(const Speaker& from, ZnodeCall call,
                                   const std::string& path) {
    const auto answer = Ask(from, call, path);
    if (!answer) return std::nullopt;
    return answer->event.outcome;
  }
  bool IsThere(const Speaker& speaker) {
    const auto answer = Ask(speaker, ZnodeCall::kSync);
    return answer && answer->kind == Event::kAnswer;
  }
  static std::string PathOf(const Speaker& speaker) {
    return absl::StrCat(kCandidates, "/", speaker.process.node.value);
  }
  void Stand(const Speaker& speaker) {
    Ask(speaker, ZnodeCall::kCreate, PathOf(speaker));
  }
  void Withdraw(const Speaker& speaker) {
    Ask(speaker, ZnodeCall::kDelete, PathOf(speaker));
  }
  std::vector<std::string> CandidatesFor(const Speaker& reader) {
    return Ask(reader, ZnodeCall::kList)->event.names;
  }
  // Writes over the version that was read before. Returns the outcome, if it
  // was told.
  std::optional<Outcome> Write(const Speaker& writer, uint64_t counter,
                               std::optional<int32_t> version) {
    MembershipRequest request;
    request.call.call = version ? ZnodeCall::kSet : ZnodeCall::kCreate;
    request.call.path = kRegister;
    request.call.data =
        quorum::EncodeBallot(BallotOf(counter, writer.process.node.value));
    request.call.version = version.value_or(0);
    Send(writer, request);
    const auto answer = Answer(writer);
    if (!answer) return std::nullopt;
    return answer->event.outcome;
  }
  // How often a change was told since the last time.
  static size_t TakeEvents(const Speaker& speaker) {
    return std::erase_if(speaker.mailbox->messages,
                         [](const MembershipMessage& message) {
                           return message.kind == Event::kChanged;
                         });
  }

  // On machine 0, 1 and so on, as node 1, 2 and so on.
  Speaker NewSpeaker(int machine) {
    Speaker speaker;
    speaker.machine = machine;
    speaker.process = Process(static_cast<uint64_t>(machine) + 1);
    speaker.mailbox = std::make_shared<MembershipMailbox>();
    speaker.mailbox->wake = [this] { ++wakes_; };
    return speaker;
  }
  Speaker Connect(int machine) {
    Speaker speaker = NewSpeaker(machine);
    speaker.session = AskToConnect(speaker)->session;
    MembershipRequest request;
    request.call.call = ZnodeCall::kCreate;
    request.call.path = kCandidates;
    Send(speaker, request);
    Answer(speaker);
    return speaker;
  }
  // All of them are heard of meanwhile.
  void RunWith(const std::vector<Speaker>& speakers, int64_t ns) {
    for (const int64_t until = now() + ns; now() < until;) {
      for (const Speaker& speaker : speakers) {
        Send(speaker, ZnodeCall::kSync, kCandidates);
      }
      network_.Run(std::min(until - now(), kSessionNanos / 4));
    }
  }

  uint64_t number_ = 0;
  int wakes_ = 0;
};

TEST_F(MembershipServiceTest, ASessionExpiresOnceNothingIsHeardOfIt) {
  const Speaker kept = Connect(0);
  const Speaker silent = Connect(1);
  EXPECT_NE(kept.session, silent.session);
  RunWith({kept}, 2 * kSessionNanos);
  EXPECT_EQ(service_.sessions(), 1u);
  EXPECT_TRUE(IsThere(kept));
  EXPECT_EQ(Ask(silent, ZnodeCall::kSync)->kind, Event::kExpired);
  // It does not come back.
  EXPECT_EQ(AskToConnect(silent)->kind, Event::kExpired);
}

TEST_F(MembershipServiceTest, ASessionIsGoneOnWithBeforeItExpires) {
  const Speaker speaker = Connect(0);
  for (int i = 0; i < 4; ++i) {
    network_.Run(kSessionNanos / 2);
    EXPECT_EQ(AskToConnect(speaker)->session, speaker.session);
  }
  EXPECT_EQ(service_.sessions(), 1u);
}

TEST_F(MembershipServiceTest, WhatIsEphemeralGoesWithItsSession) {
  const Speaker mortal = Connect(0);
  const Speaker witness = Connect(1);
  Stand(mortal);
  Stand(witness);
  EXPECT_THAT(CandidatesFor(witness), ElementsAre("1", "2"));
  RunWith({witness}, 2 * kSessionNanos);
  EXPECT_EQ(TakeEvents(witness), 1u);
  EXPECT_THAT(CandidatesFor(witness), ElementsAre("2"));
}

TEST_F(MembershipServiceTest, ChildrenAreNumberedInTheOrderInWhichTheyCome) {
  const Speaker speaker = Connect(0);
  for (int i = 0; i < 2; ++i) {
    MembershipRequest request;
    request.call.call = ZnodeCall::kCreate;
    request.call.path = "/c/a-";
    request.call.life = ZnodeLife::kEphemeralSequential;
    Send(speaker, request);
    EXPECT_EQ(Answer(speaker)->event.path, absl::StrCat("/c/a-000000000", i));
  }
}

TEST_F(MembershipServiceTest, WhatIsNotThereCannotBeUsed) {
  const Speaker speaker = Connect(0);
  EXPECT_EQ(OutcomeOf(speaker, ZnodeCall::kCreate, "/d/e"), Outcome::kNone);
  for (const ZnodeCall call : {ZnodeCall::kGet, ZnodeCall::kList,
                               ZnodeCall::kSet, ZnodeCall::kDelete}) {
    EXPECT_EQ(OutcomeOf(speaker, call, "/d"), Outcome::kNone);
  }
  EXPECT_EQ(OutcomeOf(speaker, ZnodeCall::kCreate, kCandidates),
            Outcome::kExists);
}

TEST_F(MembershipServiceTest, WhatHasChildrenOrIsKeptIsNotDeleted) {
  const Speaker speaker = Connect(0);
  Stand(speaker);
  EXPECT_EQ(OutcomeOf(speaker, ZnodeCall::kDelete, kCandidates),
            Outcome::kRefused);
  MembershipRequest request;
  request.call.call = ZnodeCall::kCreate;
  request.call.path = "/kept";
  request.call.rights = quorum::ZnodeRights::kKeepFolder;
  Send(speaker, request);
  Answer(speaker);
  EXPECT_EQ(OutcomeOf(speaker, ZnodeCall::kCreate, "/kept/a"), Outcome::kDone);
  EXPECT_EQ(OutcomeOf(speaker, ZnodeCall::kDelete, "/kept/a"),
            Outcome::kRefused);
}

TEST_F(MembershipServiceTest, WhatIsDeletedByHandIsTold) {
  const Speaker witness = Connect(0);
  Stand(witness);
  CandidatesFor(witness);
  EXPECT_EQ(OutcomeOf(witness, ZnodeCall::kGet, PathOf(witness)),
            Outcome::kDone);
  EXPECT_TRUE(service_.Delete(kCandidates));
  EXPECT_FALSE(service_.Delete(kCandidates));
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 2u);
  EXPECT_TRUE(IsThere(witness));
}

class OtherSessionTest : public MembershipServiceTest {
 protected:
  static MembershipOptions AllOthers() {
    MembershipOptions options = Options();
    options.other_session_odds = 1;
    return options;
  }
  OtherSessionTest() : MembershipServiceTest(AllOthers()) {}
};

TEST_F(OtherSessionTest, OneThatHasExpiredComesBackAsAnother) {
  const Speaker speaker = Connect(0);
  EXPECT_TRUE(service_.Expire(0));
  const auto answer = AskToConnect(speaker);
  ASSERT_EQ(answer->kind, Event::kAnswer);
  EXPECT_NE(answer->session, speaker.session);
}

TEST_F(MembershipServiceTest, SessionsOfOneMachineExpireTogether) {
  const Speaker first = Connect(0);
  const Speaker second = Connect(0);
  const Speaker other = Connect(1);
  EXPECT_TRUE(service_.Expire(0));
  EXPECT_FALSE(IsThere(first));
  EXPECT_FALSE(IsThere(second));
  EXPECT_TRUE(IsThere(other));
  EXPECT_FALSE(service_.Expire(0));
}

TEST_F(MembershipServiceTest, AWatchTellsOfOneChangeAndNoMore) {
  const Speaker witness = Connect(0);
  const Speaker candidate = Connect(1);
  CandidatesFor(witness);
  Stand(candidate);
  Withdraw(candidate);
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 1u);
  EXPECT_THAT(CandidatesFor(witness), IsEmpty());
  Stand(candidate);
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 1u);
  // A session that does not read it any more hears nothing any more.
  Withdraw(candidate);
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 0u);
}

// Two watchers hear of a change, whichever was the first to watch.
TEST_F(MembershipServiceTest, TwoSessionsHearOfOneChangeInAnyOrder) {
  std::vector<Speaker> watchers = {Connect(0), Connect(1)};
  const Speaker candidate = Connect(2);
  std::set<size_t> first_to_hear;
  for (int i = 0; i < 20; ++i) {
    for (const Speaker& watcher : watchers) CandidatesFor(watcher);
    Send(candidate, i % 2 == 0 ? ZnodeCall::kCreate : ZnodeCall::kDelete,
         PathOf(candidate));
    size_t heard = 0;
    while (heard == 0) {
      ASSERT_TRUE(network_.Step());
      for (size_t w = 0; w < watchers.size() && heard == 0; ++w) {
        heard = TakeEvents(watchers[w]);
        if (heard != 0) first_to_hear.insert(w);
      }
    }
    RunWith({watchers[0], watchers[1], candidate}, kEventNanos);
    for (const Speaker& watcher : watchers) watcher.mailbox->messages.clear();
  }
  EXPECT_THAT(first_to_hear, ElementsAre(0u, 1u));
}

TEST_F(MembershipServiceTest, AWatcherIsToldNoSoonerThanItsDelay) {
  const Speaker witness = Connect(0);
  const Speaker candidate = Connect(1);
  int delayed = 0;
  service_.DelayWatches(now() + kSessionNanos, [&] { ++delayed; });
  CandidatesFor(witness);
  Stand(candidate);
  EXPECT_EQ(delayed, 1);
  RunWith({witness, candidate}, kSessionNanos - kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 0u);
  RunWith({witness, candidate}, 2 * kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 1u);
  EXPECT_EQ(delayed, 1);
}

class StaleReadsTest : public MembershipServiceTest {
 protected:
  static MembershipOptions AllStale() {
    MembershipOptions options = Options();
    options.stale_odds = 1;
    return options;
  }
  StaleReadsTest() : MembershipServiceTest(AllStale()) {}
};

// Else a session that read the list would never hear of the last change.
TEST_F(StaleReadsTest, WhoReadsAnOlderListHearsThatItHasChanged) {
  const Speaker witness = Connect(0);
  const Speaker candidate = Connect(1);
  Stand(candidate);
  EXPECT_THAT(CandidatesFor(witness), IsEmpty());
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 1u);
  service_.Heal();
  EXPECT_THAT(CandidatesFor(witness), ElementsAre("2"));
}

TEST_F(StaleReadsTest, WhoReadsAnOlderRegisterDoesNotOverwriteTheNewOne) {
  const Speaker reader = Connect(0);
  const Speaker writer = Connect(1);
  EXPECT_EQ(Write(writer, 1, std::nullopt), Outcome::kDone);
  EXPECT_TRUE(IsThere(reader));
  EXPECT_EQ(Write(writer, 2, 0), Outcome::kDone);
  const auto read = Ask(reader, ZnodeCall::kGet, kRegister);
  EXPECT_EQ(read->event.data, quorum::EncodeBallot(BallotOf(1, 2)));
  EXPECT_EQ(Write(reader, 3, read->event.version), Outcome::kOtherVersion);
  EXPECT_EQ(service_.ballots(), (BallotRegister{BallotOf(2, 2), 1}));
}

// ZN3 (znodes.h).
TEST_F(StaleReadsTest, WhoHasSyncedReadsNothingOlder) {
  const Speaker reader = Connect(0);
  const Speaker writer = Connect(1);
  EXPECT_EQ(Write(writer, 1, std::nullopt), Outcome::kDone);
  EXPECT_EQ(OutcomeOf(reader, ZnodeCall::kGet, kRegister), Outcome::kNone);
  EXPECT_TRUE(IsThere(reader));
  EXPECT_EQ(OutcomeOf(reader, ZnodeCall::kGet, kRegister), Outcome::kDone);
  // Nor who has written.
  EXPECT_EQ(OutcomeOf(writer, ZnodeCall::kGet, kRegister), Outcome::kDone);
}

TEST_F(MembershipServiceTest, ARegisterIsWrittenOverTheVersionThatWasRead) {
  const Speaker one = Connect(0);
  const Speaker two = Connect(1);
  EXPECT_EQ(Write(one, 1, 0), Outcome::kNone);
  EXPECT_EQ(Write(one, 1, std::nullopt), Outcome::kDone);
  EXPECT_EQ(Write(two, 2, std::nullopt), Outcome::kExists);
  EXPECT_EQ(Write(two, 2, 0), Outcome::kDone);
  EXPECT_EQ(Write(one, 3, 0), Outcome::kOtherVersion);
  EXPECT_EQ(Ask(one, ZnodeCall::kGet, kRegister)->event.data,
            quorum::EncodeBallot(BallotOf(2, 2)));
  EXPECT_EQ(service_.BallotOfAnother(two.process), BallotOf(1, 1));
  EXPECT_EQ(service_.BallotOfAnother(one.process), BallotOf(2, 2));
  EXPECT_EQ(violated(), "");
}

TEST_F(MembershipServiceTest, TheCheckerIsToldOfEachBallotThatIsWritten) {
  const Speaker speaker = Connect(0);
  EXPECT_EQ(Write(speaker, 2, std::nullopt), Outcome::kDone);
  EXPECT_EQ(Write(speaker, 1, 0), Outcome::kDone);
  EXPECT_EQ(violated(), "P-A4.1");
}

TEST_F(MembershipServiceTest, AWriteTakesEffectThoughItsAnswerIsLost) {
  const Speaker speaker = Connect(0);
  service_.CutFrom(0);
  EXPECT_EQ(Write(speaker, 1, std::nullopt), std::nullopt);
  EXPECT_EQ(service_.lost(0), 1u);
  service_.HealFrom(0);
  EXPECT_EQ(service_.ballots(), (BallotRegister{BallotOf(1, 1), 0}));
  EXPECT_EQ(Write(speaker, 2, std::nullopt), Outcome::kExists);
}

TEST_F(MembershipServiceTest, ARequestOverALinkThatIsCutIsLost) {
  const Speaker speaker = Connect(0);
  service_.CutTo(0);
  service_.CutTo(0);
  service_.HealTo(0);  // one of two
  EXPECT_EQ(Write(speaker, 1, std::nullopt), std::nullopt);
  EXPECT_EQ(service_.lost(0), 1u);
  service_.HealTo(0);
  EXPECT_EQ(service_.ballots(), std::nullopt);
  EXPECT_TRUE(IsThere(speaker));
}

TEST_F(MembershipServiceTest, AnEventIsHeldBackWhileItsLinkIsCut) {
  const Speaker witness = Connect(0);
  const Speaker candidate = Connect(1);
  CandidatesFor(witness);
  service_.CutFrom(0);
  Stand(candidate);
  RunWith({witness, candidate}, kSessionNanos);
  EXPECT_EQ(TakeEvents(witness), 0u);
  service_.HealFrom(0);
  network_.Run(3 * kEventNanos);
  EXPECT_EQ(TakeEvents(witness), 1u);
}

class LostMessagesTest : public MembershipServiceTest {
 protected:
  static MembershipOptions AllLost() {
    MembershipOptions options = Options();
    options.lost_odds = 1;
    return options;
  }
  LostMessagesTest() : MembershipServiceTest(AllLost()) {}
};

TEST_F(LostMessagesTest, SomeLostRequestsArriveLater) {
  constexpr int kRequests = 40;
  const Speaker speaker = NewSpeaker(0);
  MembershipRequest request;
  request.kind = MembershipRequest::Kind::kConnect;
  for (int i = 0; i < kRequests; ++i) Send(speaker, request);
  network_.Run(kAnswerNanos);
  const size_t soon = service_.sessions();
  network_.Run(kSessionNanos / 2);
  const size_t late = service_.sessions() - soon;
  EXPECT_GT(late, 0u);
  EXPECT_LT(soon + late, kRequests);
  // Their answers are lost.
  EXPECT_EQ(wakes_, 0);
}

TEST_F(MembershipServiceTest, WhileItIsAwayNothingIsAnsweredAndNothingExpires) {
  const Speaker speaker = Connect(0);
  service_.Stop();
  EXPECT_FALSE(service_.is_up());
  EXPECT_EQ(Write(speaker, 1, std::nullopt), std::nullopt);
  network_.Run(2 * kSessionNanos);
  service_.Start(/*with_sessions=*/true);
  // It has as long as ever to be heard of.
  network_.Run(kSessionNanos / 2);
  EXPECT_TRUE(IsThere(speaker));
  EXPECT_EQ(service_.ballots(), std::nullopt);
}

TEST_F(MembershipServiceTest, ItMayComeBackWithoutSessions) {
  const Speaker speaker = Connect(0);
  Stand(speaker);
  Write(speaker, 1, std::nullopt);
  service_.Stop();
  service_.Start(/*with_sessions=*/false);
  EXPECT_FALSE(IsThere(speaker));
  EXPECT_THAT(CandidatesFor(Connect(1)), IsEmpty());
  EXPECT_EQ(service_.ballots(), (BallotRegister{BallotOf(1, 1), 0}));
}

// Each restart takes back between one write and four.
TEST_F(MembershipServiceTest, ItMayComeBackWithAnOlderRegister) {
  constexpr uint64_t kWrites = 8;
  const Speaker speaker = Connect(0);
  for (uint64_t i = 0; i < kWrites; ++i) {
    const auto version = static_cast<int32_t>(i) - 1;
    Write(speaker, i + 1, i == 0 ? std::nullopt : std::optional(version));
  }
  uint64_t last = kWrites;
  while (service_.ballots()) {
    ASSERT_EQ(quorum::BallotCounter(service_.ballots()->last), last);
    service_.RollBack();
    EXPECT_EQ(service_.sessions(), 0u);
    const uint64_t left = service_.ballots()
                              ? quorum::BallotCounter(service_.ballots()->last)
                              : 0;
    EXPECT_LT(left, last);
    EXPECT_GE(left + 4, last);
    last = left;
  }
  service_.RollBack();  // there is no older one
  EXPECT_EQ(service_.ballots(), std::nullopt);
  EXPECT_EQ(violated(), "");
}

// It loses all, says nothing that can be read, or far too much.
TEST_F(MembershipServiceTest, ItMayComeBackAndLie) {
  std::set<std::string> said;
  for (int i = 0; i < 40; ++i) {
    const Speaker speaker = Connect(0);
    Write(speaker, 1, std::nullopt);
    service_.Lie();
    EXPECT_EQ(service_.sessions(), 0u);
    said.insert(service_.Content(kRegister).value_or("none"));
    service_.Delete(kRegister);
  }
  EXPECT_THAT(said, ElementsAre(quorum::EncodeBallot(quorum::PackBallot(
                                    {quorum::kBallotCounterMax,
                                     {NodeId(1), uint64_t{1} << 63}})),
                                "none", "not a ballot"));
}

TEST_F(LostMessagesTest, HealingEndsAllThatHappenedToIt) {
  service_.CutTo(0);
  service_.CutFrom(1);
  service_.Stop();
  service_.Heal();
  const Speaker zero = Connect(0);
  const Speaker one = Connect(1);
  EXPECT_TRUE(IsThere(zero));
  EXPECT_TRUE(IsThere(one));
}

}  // namespace
}  // namespace alpheus::sim
