// SPDX-License-Identifier: Apache-2.0
// Is the simulated membership service as good as a real one, and no better?
#include "tools/sim/actors/membership_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tests/tools/sim/actors/membership_clients.h"

namespace alpheus::sim {

using quorum::BallotRegister;
using quorum::Candidate;

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = MembershipRequest::Kind;
using Event = MembershipMessage::Kind;

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
    service_.Send(from.machine, from.mailbox, std::move(request));
  }
  void Send(const Speaker& from, Kind kind) {
    MembershipRequest request;
    request.kind = kind;
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
  std::optional<MembershipMessage> Ask(const Speaker& from, Kind kind) {
    Send(from, kind);
    return Answer(from);
  }
  bool IsThere(const Speaker& speaker) {
    const auto answer = Ask(speaker, Kind::kPing);
    return answer && answer->kind == Event::kDone;
  }
  std::vector<Candidate> CandidatesFor(const Speaker& reader) {
    return Ask(reader, Kind::kReadCandidates)->candidates;
  }
  // Writes over the version that was read before. Returns the service's answer,
  // if it comes in time.
  std::optional<Event> Write(const Speaker& writer, uint64_t counter,
                             std::optional<int64_t> version) {
    MembershipRequest request;
    request.kind = Kind::kWriteRegister;
    request.ballot = BallotOf(counter, writer.process.node.value);
    request.version = version;
    Send(writer, request);
    const auto answer = Answer(writer);
    if (!answer) return std::nullopt;
    return answer->kind;
  }
  // How often that was told since the last time.
  static size_t TakeEvents(const Speaker& speaker, Event event) {
    return std::erase_if(speaker.mailbox->messages,
                         [event](const MembershipMessage& message) {
                           return message.kind == event;
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
    speaker.session = Ask(speaker, Kind::kConnect)->session;
    return speaker;
  }
  // All of them are heard of meanwhile.
  void RunWith(const std::vector<Speaker>& speakers, int64_t ns) {
    for (const int64_t until = now() + ns; now() < until;) {
      for (const Speaker& speaker : speakers) Send(speaker, Kind::kPing);
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
  EXPECT_EQ(Ask(silent, Kind::kPing)->kind, Event::kExpired);
  // It does not come back.
  EXPECT_EQ(Ask(silent, Kind::kConnect)->kind, Event::kExpired);
}

TEST_F(MembershipServiceTest, ASessionIsGoneOnWithBeforeItExpires) {
  const Speaker speaker = Connect(0);
  for (int i = 0; i < 4; ++i) {
    network_.Run(kSessionNanos / 2);
    EXPECT_EQ(Ask(speaker, Kind::kConnect)->session, speaker.session);
  }
  EXPECT_EQ(service_.sessions(), 1u);
}

TEST_F(MembershipServiceTest, WhatIsRegisteredGoesWithItsSession) {
  const Speaker mortal = Connect(0);
  const Speaker witness = Connect(1);
  MembershipRequest request;
  request.kind = Kind::kRegister;
  request.registration = {NodeId(1), 7, "here", Epoch(0)};
  Send(mortal, request);
  Ask(mortal, Kind::kStand);
  Ask(witness, Kind::kStand);
  EXPECT_THAT(Ask(witness, Kind::kReadMembers)->members,
              ElementsAre(request.registration));
  EXPECT_THAT(
      CandidatesFor(witness),
      ElementsAre(Candidate{1, mortal.process}, Candidate{2, witness.process}));
  RunWith({witness}, 2 * kSessionNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kRegistrationsChanged), 1u);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 1u);
  EXPECT_THAT(Ask(witness, Kind::kReadMembers)->members, IsEmpty());
  EXPECT_THAT(CandidatesFor(witness),
              ElementsAre(Candidate{2, witness.process}));
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
  Ask(candidate, Kind::kStand);
  Ask(candidate, Kind::kWithdraw);
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 1u);
  EXPECT_THAT(CandidatesFor(witness), IsEmpty());
  Ask(candidate, Kind::kStand);
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 1u);
  // A session that does not read it any more hears nothing any more.
  Ask(candidate, Kind::kWithdraw);
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 0u);
}

// Two watchers hear of a change, whichever was the first to watch.
TEST_F(MembershipServiceTest, TwoSessionsHearOfOneChangeInAnyOrder) {
  std::vector<Speaker> watchers = {Connect(0), Connect(1)};
  const Speaker candidate = Connect(2);
  std::set<size_t> first_to_hear;
  for (int i = 0; i < 20; ++i) {
    for (const Speaker& watcher : watchers) CandidatesFor(watcher);
    Send(candidate, i % 2 == 0 ? Kind::kStand : Kind::kWithdraw);
    size_t heard = 0;
    while (heard == 0) {
      ASSERT_TRUE(network_.Step());
      for (size_t w = 0; w < watchers.size() && heard == 0; ++w) {
        heard = TakeEvents(watchers[w], Event::kCandidatesChanged);
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
  Ask(candidate, Kind::kStand);
  EXPECT_EQ(delayed, 1);
  RunWith({witness, candidate}, kSessionNanos - kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 0u);
  RunWith({witness, candidate}, 2 * kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 1u);
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
  Ask(candidate, Kind::kStand);
  EXPECT_THAT(CandidatesFor(witness), IsEmpty());
  network_.Run(kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 1u);
  service_.Heal();
  EXPECT_THAT(CandidatesFor(witness),
              ElementsAre(Candidate{1, candidate.process}));
}

TEST_F(StaleReadsTest, WhoReadsAnOlderRegisterDoesNotOverwriteTheNewOne) {
  const Speaker speaker = Connect(0);
  EXPECT_EQ(Write(speaker, 1, std::nullopt), Event::kDone);
  EXPECT_EQ(Write(speaker, 2, 0), Event::kDone);
  const auto read = Ask(speaker, Kind::kReadRegister);
  EXPECT_EQ(read->ballots, (BallotRegister{BallotOf(1, 1), 0}));
  EXPECT_EQ(Write(speaker, 3, read->ballots->version), Event::kOvertaken);
  EXPECT_EQ(service_.ballots(), (BallotRegister{BallotOf(2, 1), 1}));
}

TEST_F(MembershipServiceTest, ARegisterIsWrittenOverTheVersionThatWasRead) {
  const Speaker one = Connect(0);
  const Speaker two = Connect(1);
  EXPECT_EQ(Write(one, 1, 0), Event::kOvertaken);  // there is none
  EXPECT_EQ(Write(one, 1, std::nullopt), Event::kDone);
  EXPECT_EQ(Write(two, 2, std::nullopt), Event::kOvertaken);
  EXPECT_EQ(Write(two, 2, 0), Event::kDone);
  EXPECT_EQ(Write(one, 3, 0), Event::kOvertaken);
  EXPECT_EQ(Ask(one, Kind::kReadRegister)->ballots,
            (BallotRegister{BallotOf(2, 2), 1}));
  EXPECT_EQ(service_.BallotOfAnother(two.process), BallotOf(1, 1));
  EXPECT_EQ(service_.BallotOfAnother(one.process), BallotOf(2, 2));
  EXPECT_EQ(violated(), "");
}

TEST_F(MembershipServiceTest, TheCheckerIsToldOfEachBallotThatIsWritten) {
  const Speaker speaker = Connect(0);
  EXPECT_EQ(Write(speaker, 2, std::nullopt), Event::kDone);
  EXPECT_EQ(Write(speaker, 1, 0), Event::kDone);
  EXPECT_EQ(violated(), "P-A4.1");
}

TEST_F(MembershipServiceTest, AWriteTakesEffectThoughItsAnswerIsLost) {
  const Speaker speaker = Connect(0);
  service_.CutFrom(0);
  EXPECT_EQ(Write(speaker, 1, std::nullopt), std::nullopt);
  EXPECT_EQ(service_.lost(0), 1u);
  service_.HealFrom(0);
  EXPECT_EQ(service_.ballots(), (BallotRegister{BallotOf(1, 1), 0}));
  EXPECT_EQ(Write(speaker, 2, std::nullopt), Event::kOvertaken);
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
  Ask(candidate, Kind::kStand);
  RunWith({witness, candidate}, kSessionNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 0u);
  service_.HealFrom(0);
  network_.Run(3 * kEventNanos);
  EXPECT_EQ(TakeEvents(witness, Event::kCandidatesChanged), 1u);
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
  for (int i = 0; i < kRequests; ++i) Send(speaker, Kind::kConnect);
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
  Ask(speaker, Kind::kStand);
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
    const auto version = static_cast<int64_t>(i) - 1;
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
