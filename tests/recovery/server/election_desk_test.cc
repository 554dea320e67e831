// SPDX-License-Identifier: Apache-2.0
// Tests the words of a node to candidates: by scripted primaries and candidates
// on a simulated network.
#include "recovery/server/election_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "log/core/ring/region_state.h"
#include "recovery/protocol/superline_report.h"
#include "recovery/server/replica_server.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {

using recovery::Hear;
using recovery::Heard;
using recovery::Instruct;
using recovery::Instruction;
using recovery::InstructionKind;
using recovery::Message;
using recovery::PrimaryWord;
using recovery::Standing;

namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// A hundredth of a millisecond, which stands for one: simulated networks are
// fast, and time passes in small steps.
constexpr int64_t kTick = kMillisecond / 100;
constexpr uint64_t kSilence = 150 * kTick;
constexpr uint64_t kWait = 500 * kTick;

ServedWorld::Options InTicks() {
  ServedWorld::Options options;
  options.server.desk.opening_silence_ns = 2'000 * kTick;
  options.server.desk.instruction_ns = 2'000 * kTick;
  options.server.desk.pause_ns = 50 * kTick;
  return options;
}

class ElectionDeskTest : public ::testing::Test {
 protected:
  // Connections take time: they are there before a primary is.
  ElectionDeskTest()
      : world_(InTicks()),
        log_(kLogA),
        asker_(world_.Connected(2, 900)),
        candidate_(world_.Connected(2, 901)) {}

  static Hear Look() {
    Hear hear;
    hear.silence_ns = kSilence;
    return hear;
  }
  // A candidate's, which waits for news, and knows of `candidate_` alone.
  Hear Question(PrimaryWord known, uint64_t epoch) const {
    Hear hear = Look();
    hear.standing = Standing::kReady;
    hear.wait_ns = kWait;
    hear.known_word = known;
    hear.known_epoch = Epoch(epoch);
    const recovery::CandidateState alone{candidate_.self(), Standing::kReady, 0,
                                         Epoch()};
    hear.known_candidates = recovery::DigestOf({&alone, 1});
    return hear;
  }
  Heard Ask(Peer& peer, const Message& request) {
    const auto reply = world_.Ask(peer, request);
    EXPECT_TRUE(reply && std::holds_alternative<Heard>(*reply));
    return reply && std::holds_alternative<Heard>(*reply)
               ? std::get<Heard>(*reply)
               : Heard();
  }
  PrimaryWord Word() { return Ask(asker_, Look()).word; }
  // A primary with a session, that promised heartbeats; none: 0.
  Peer& Primary(uint32_t heartbeat_ms = 30, uint64_t epoch = 5) {
    log_.OpenEpoch(Epoch(epoch));
    Peer& peer = world_.Connected(1, epoch);
    const recovery::Installation& installation = log_.installation();
    world_.GetPromise(peer, installation.epoch);
    const recovery::RepairOpened opened =
        world_.GetRepairOpened(peer, installation.epoch);
    const auto reply = world_.Ask(
        peer, recovery::Install{installation, kTheSession, 4, heartbeat_ms});
    EXPECT_EQ(reply, Message(recovery::Installed{}));
    const Ring ring = log_.ring();
    const fabric::RegionKey own = *peer.fabric().Register(
        {ring.data(), ring.capacity()}, fabric::RemoteAccess::kNone);
    peer.session =
        *replication::PrimarySession::Start({ring, own, opened.ring_key},
                                            {.epoch = installation.epoch,
                                             .session = kTheSession,
                                             .next = installation.end,
                                             .credits = 4,
                                             .ceiling = installation.ceiling},
                                            peer.fabric(), peer.connection());
    return peer;
  }
  void Beat(Peer& primary) {
    ASSERT_TRUE(primary.session->Beat(Lsn(0)).ok());
    world_.Run(kTick);
  }
  std::optional<Heard> TakeReply(Peer& peer) {
    if (peer.replies.empty()) return std::nullopt;
    Message reply = peer.replies.front();
    peer.replies.pop_front();
    return std::get<Heard>(reply);
  }

  ServedWorld world_;
  PrimaryLog log_;
  Peer& asker_;
  Peer& candidate_;
};

TEST_F(ElectionDeskTest, NobodyIsPrimaryOfALogThatNobodyOpened) {
  const Heard heard = Ask(asker_, Look());
  EXPECT_EQ(heard.word, PrimaryWord::kGone);
  EXPECT_EQ(heard.promised, quorum::Promise());
  EXPECT_THAT(heard.candidates, IsEmpty());
  EXPECT_FALSE(heard.instruction.has_value());
}

TEST_F(ElectionDeskTest, PrimaryIsHeardByItsHeartbeats) {
  Peer& primary = Primary();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(primary.session->Beat(Lsn(0)).ok());
    world_.Run(30 * kTick);
  }
  const Heard heard = Ask(asker_, Look());
  EXPECT_EQ(heard.word, PrimaryWord::kHeard);
  EXPECT_EQ(heard.promised, (quorum::Promise{Epoch(5), primary.self()}));
  EXPECT_EQ(heard.log_epoch, Epoch(5));
  EXPECT_EQ(heard.configuration_id, log_.installation().configuration.id);
  EXPECT_TRUE(primary.session->is_idle()) << "heartbeats are answered";
}

TEST_F(ElectionDeskTest, PrimaryThatSaysNothingIsSilent) {
  Beat(Primary());
  world_.Run(140 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
  world_.Run(20 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kSilent);
}

// Other members may take it longer, and it has opened the log only then.
TEST_F(ElectionDeskTest, PrimaryThatHasNotSpokenStillOpensTheLog) {
  Primary();
  world_.Run(1'900 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
  world_.Run(400 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kSilent);
}

// Its silence means nothing: such programs open the log without candidates.
TEST_F(ElectionDeskTest, PrimaryThatPromisedNoHeartbeatsIsNeverSilent) {
  Beat(Primary(/*heartbeat_ms=*/0));
  world_.Run(3'000 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
}

TEST_F(ElectionDeskTest, RecordsAreHeardAsHeartbeatsAre) {
  Peer& primary = Primary();
  for (int i = 0; i < 10; ++i) {
    Replicate(world_, primary, log_, "a");  // takes 100 ticks
    world_.Run(40 * kTick);
  }
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
}

TEST_F(ElectionDeskTest, BrokenConnectionIsToldAtOnceToWhoWaits) {
  Peer& primary = Primary();
  candidate_.Send(Question(PrimaryWord::kHeard, 5));
  world_.Run(10 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  ASSERT_TRUE(primary.Close().ok());
  world_.Run(5 * kTick);
  const std::optional<Heard> heard = TakeReply(candidate_);
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->word, PrimaryWord::kGone);
  // It stands on.
  EXPECT_THAT(heard->candidates, SizeIs(1));
  EXPECT_FALSE(candidate_.ended);
}

TEST_F(ElectionDeskTest, SilenceIsToldWhenTheAskersSilenceIsOver) {
  Beat(Primary());
  Hear hear = Question(PrimaryWord::kHeard, 5);
  hear.silence_ns = 80 * kTick;
  candidate_.Send(hear);
  world_.Run(70 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  world_.Run(12 * kTick);
  const std::optional<Heard> heard = TakeReply(candidate_);
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->word, PrimaryWord::kSilent);
}

// ELD4.
TEST_F(ElectionDeskTest, WithoutNewsTheReplyComesAtTheEndOfTheWait) {
  candidate_.Send(Question(PrimaryWord::kGone, 0));
  world_.Run(490 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  world_.Run(20 * kTick);
  EXPECT_TRUE(TakeReply(candidate_).has_value());
}

TEST_F(ElectionDeskTest, WhoKnowsLessIsAnsweredAtOnce) {
  Primary();
  EXPECT_EQ(Ask(candidate_, Question(PrimaryWord::kGone, 5)).word,
            PrimaryWord::kHeard);
  EXPECT_EQ(Ask(candidate_, Question(PrimaryWord::kHeard, 4)).promised.epoch,
            Epoch(5));
}

// An opener is heard like a primary, as long as it goes on.
TEST_F(ElectionDeskTest, OpenerIsHeardUntilItStandsStill) {
  Peer& opener = world_.Connected(1, 6);
  world_.GetPromise(opener, Epoch(6));
  world_.Run(1'000 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
  world_.Run(1'400 * kTick);
  EXPECT_EQ(Word(), PrimaryWord::kSilent);
  ASSERT_TRUE(opener.Close().ok());
  world_.Run(5 * kTick);
  const Heard heard = Ask(asker_, Look());
  EXPECT_EQ(heard.word, PrimaryWord::kGone);
  // A lone promise: the replica has promised, and nobody has opened.
  EXPECT_EQ(heard.promised.epoch, Epoch(6));
  EXPECT_EQ(heard.log_epoch, Epoch(0));
}

// ELD3.
TEST_F(ElectionDeskTest, PauseOfTheNodeIsNoSilence) {
  Beat(Primary());
  Hear hear = Question(PrimaryWord::kHeard, 5);
  hear.wait_ns = 5'000 * kTick;
  candidate_.Send(hear);
  world_.Run(10 * kTick);
  // The node stands still for longer than the silence.
  world_.network().Run(400 * kTick);
  world_.PollNode();
  world_.Run(5 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  world_.Run(kSilence);
  const std::optional<Heard> heard = TakeReply(candidate_);
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->word, PrimaryWord::kSilent);
}

TEST_F(ElectionDeskTest, CandidatesAreNamedWhileTheyStand) {
  Peer& first = world_.Connected(1, 11);
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.priority = 7;
  hear.holds = Epoch(3);
  first.Send(hear);
  world_.Run(5 * kTick);
  Heard heard = Ask(asker_, Look());
  ASSERT_THAT(heard.candidates, SizeIs(1));
  EXPECT_EQ(
      heard.candidates[0],
      (recovery::CandidateState{first.self(), Standing::kReady, 7, Epoch(3)}));
  // One that asks no more stands no more.
  world_.Run(1'100 * kTick);
  EXPECT_THAT(Ask(asker_, Look()).candidates, IsEmpty());
  TakeReply(first);
  first.Send(hear);
  world_.Run(5 * kTick);
  EXPECT_THAT(Ask(asker_, Look()).candidates, SizeIs(1));
  ASSERT_TRUE(first.Close().ok());
  world_.Run(5 * kTick);
  EXPECT_THAT(Ask(asker_, Look()).candidates, IsEmpty());
}

// ELD7. Two that begin together know of each other before either opens the log.
TEST_F(ElectionDeskTest, NewCandidateIsToldAtOnceToWhoWaits) {
  Peer& second = world_.Connected(1, 11);
  candidate_.Send(Question(PrimaryWord::kGone, 0));
  world_.Run(10 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  // It knows of nobody, and is answered at once; the first one is told of it.
  Hear first_question = Question(PrimaryWord::kGone, 0);
  first_question.known_candidates = 0;
  second.Send(first_question);
  world_.Run(5 * kTick);
  for (Peer* const peer : {&candidate_, &second}) {
    const std::optional<Heard> heard = TakeReply(*peer);
    ASSERT_TRUE(heard.has_value());
    EXPECT_THAT(heard->candidates, SizeIs(2));
    // Both wait now, for nothing is new.
    Hear next = Question(PrimaryWord::kGone, 0);
    next.known_candidates = recovery::DigestOf(heard->candidates);
    peer->Send(next);
  }
  world_.Run(50 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  EXPECT_THAT(second.replies, IsEmpty());
  ASSERT_TRUE(second.Close().ok());
  world_.Run(5 * kTick);
  const std::optional<Heard> heard = TakeReply(candidate_);
  ASSERT_TRUE(heard.has_value());
  EXPECT_THAT(heard->candidates, SizeIs(1));
}

// ELD7: a process that asks once, beside the question that waits, stands once.
TEST_F(ElectionDeskTest, QuestionOfTheMomentNamesNobody) {
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.wait_ns = 0;
  EXPECT_THAT(Ask(asker_, hear).candidates, IsEmpty());
}

TEST_F(ElectionDeskTest, InstructionReachesWhoStandsAtOnceAndForAWhile) {
  candidate_.Send(Question(PrimaryWord::kGone, 0));
  world_.Run(5 * kTick);
  const Instruction instruction{InstructionKind::kElect, NodeId(2), 99};
  EXPECT_EQ(Ask(asker_, Instruct{instruction}).instruction, instruction);
  world_.Run(5 * kTick);
  const std::optional<Heard> heard = TakeReply(candidate_);
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->instruction, instruction);
  // It is known now.
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.stood_ns = kWait;
  hear.known_instruction = 99;
  candidate_.Send(hear);
  world_.Run(5 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  // An asker that comes later is told, too, but not for ever.
  EXPECT_EQ(Ask(asker_, Look()).instruction, instruction);
  world_.Run(2'000 * kTick);
  EXPECT_FALSE(Ask(asker_, Look()).instruction.has_value());
}

// ELD9. It opens the log meanwhile, which takes long, and asks nothing.
TEST_F(ElectionDeskTest, InstructionIsKeptForWhoStoodUntilItAsksAgain) {
  candidate_.Send(Question(PrimaryWord::kGone, 0));
  world_.Run(5 * kTick);
  Peer& opener = world_.Connected(2, 902);
  world_.GetPromise(opener, Epoch(6));
  world_.Run(5 * kTick);
  const std::optional<Heard> of_itself = TakeReply(candidate_);
  ASSERT_TRUE(of_itself.has_value());
  EXPECT_FALSE(of_itself->instruction.has_value());
  world_.Run(1'500 * kTick);  // it is named no more
  const Instruction instruction{InstructionKind::kDrain, NodeId(2), 99};
  Ask(asker_, Instruct{instruction});
  world_.Run(5'000 * kTick);
  EXPECT_FALSE(Ask(asker_, Look()).instruction.has_value());
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.stood_ns = 7'000 * kTick;
  EXPECT_EQ(Ask(candidate_, hear).instruction, instruction);
  // It knows it now.
  hear.known_instruction = instruction.id;
  hear.wait_ns = 0;
  EXPECT_FALSE(Ask(candidate_, hear).instruction.has_value());
}

// ELD4. Each by its own time.
TEST_F(ElectionDeskTest, EachOfManyThatWaitHasItsReplyInTime) {
  Peer& patient = world_.Connected(1, 11);
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.standing = Standing::kNo;
  hear.known_candidates = recovery::DigestOf({});
  hear.wait_ns = 3 * kWait;
  patient.Send(hear);
  hear.wait_ns = kWait;
  candidate_.Send(hear);
  world_.Run(kWait - 20 * kTick);
  EXPECT_THAT(candidate_.replies, IsEmpty());
  world_.Run(40 * kTick);
  EXPECT_THAT(candidate_.replies, SizeIs(1));
  EXPECT_THAT(patient.replies, IsEmpty());
  world_.Run(2 * kWait);
  EXPECT_THAT(patient.replies, SizeIs(1));
}

// ELD5. One for each log, and the last one counts.
TEST_F(ElectionDeskTest, LaterInstructionTakesThePlaceOfTheOneBefore) {
  candidate_.Send(Question(PrimaryWord::kGone, 0));
  world_.Run(5 * kTick);
  for (const uint64_t id : {98u, 99u}) {
    Ask(asker_, Instruct{{InstructionKind::kDrain, NodeId(2), id}});
    world_.Run(5 * kTick);
    EXPECT_EQ(Ask(asker_, Look()).instruction->id, id);
  }
  // It has taken neither.
  TakeReply(candidate_);
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.stood_ns = kWait;
  EXPECT_EQ(Ask(candidate_, hear).instruction->id, 99u);
}

// ELD6. It has reached the same process by another node, or it was meant for
// the one before it.
TEST_F(ElectionDeskTest, InstructionIsForThoseThatStoodWhenItCame) {
  world_.Run(100 * kTick);
  const Instruction instruction{InstructionKind::kDrain, NodeId(2), 99};
  Ask(asker_, Instruct{instruction});
  world_.Run(50 * kTick);
  Hear hear = Question(PrimaryWord::kGone, 0);
  hear.wait_ns = 0;
  hear.stood_ns = 10 * kTick;
  EXPECT_FALSE(Ask(candidate_, hear).instruction.has_value());
  hear.stood_ns = 100 * kTick;
  EXPECT_EQ(Ask(candidate_, hear).instruction, instruction);
  hear.stood_ns = ~uint64_t{0};
  EXPECT_EQ(Ask(candidate_, hear).instruction, instruction);
}

// A primary that is to hand over is there until it has closed the log.
TEST_F(ElectionDeskTest, InstructionSaysNothingOfThePrimary) {
  Peer& primary = Primary();
  const Instruct drain{{InstructionKind::kDrain, NodeId(1), 99}};
  EXPECT_EQ(Ask(asker_, drain).word, PrimaryWord::kHeard);
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
  Beat(primary);
  EXPECT_EQ(Word(), PrimaryWord::kHeard);
}

TEST_F(ElectionDeskTest, ConnectionWithAPromiseAsksForNothing) {
  Peer& opener = world_.Connected(1, 6);
  world_.GetPromise(opener, Epoch(6));
  EXPECT_EQ(FailedWith(world_.Ask(opener, Look())),
            absl::StatusCode::kFailedPrecondition);
  Peer& again = world_.Connected(1, 7);
  world_.GetPromise(again, Epoch(7));
  EXPECT_EQ(FailedWith(world_.Ask(
                again, Instruct{{InstructionKind::kDrain, NodeId(1), 1}})),
            absl::StatusCode::kFailedPrecondition);
}

// The node hears nothing of a primary that has its region.
TEST(ElectionDeskOfAClaimTest, LocalPrimaryIsNotHeard) {
  FakeRegions regions(kLogB);
  ServedWorld::Options options;
  const RegionState state =
      *ReadRegionState(FormattedRegion(kLogB, kNode)->region(), "replica");
  regions.server_hello = [&](Uuid /*log_id*/) {
    return recovery::ServerHelloOf(state.superline);
  };
  options.server.regions = &regions;
  ServedWorld world(options);
  const quorum::PrimaryId local{kNode, 77};
  Peer& primary = world.NewPeer(1, local.incarnation);
  recovery::Hello hello = primary.HelloOf(kLogB);
  hello.primary = local;
  primary.Connect(world.address(), hello);
  world.Run(5 * kTick);
  Peer& early = world.NewPeer(1, 78);
  hello.primary = {kNode, 78};
  early.Connect(world.address(), hello);
  world.Run(5 * kTick);
  Hear hear;
  hear.silence_ns = kSilence;
  auto reply = world.Ask(early, hear);
  ASSERT_TRUE(reply && std::holds_alternative<Heard>(*reply));
  EXPECT_EQ(std::get<Heard>(*reply).word, PrimaryWord::kClaimed);
  EXPECT_EQ(std::get<Heard>(*reply).promised, quorum::Promise());
  primary.Send(recovery::Claim{{Epoch(5), local}});
  world.Run(5 * kTick);
  reply = world.Ask(early, hear);
  ASSERT_TRUE(reply && std::holds_alternative<Heard>(*reply));
  EXPECT_EQ(std::get<Heard>(*reply).word, PrimaryWord::kClaimed);
  EXPECT_EQ(std::get<Heard>(*reply).promised,
            (quorum::Promise{Epoch(5), local}));
}

}  // namespace
}  // namespace alpheus::testing
