// SPDX-License-Identifier: Apache-2.0
// Messages that are a log, credits, and what both executors of a row refuse.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "replication/persist/execute/message_log.h"
#include "replication/persist/execute/update_requester.h"
#include "replication/persist/execute/update_responder.h"
#include "replication/persist/platform/method_steps.h"
#include "tests/replication/persist/execute/update_world.h"
#include "tests/support/fabrics/direct_fabric.h"

namespace alpheus::testing {

using fabric::LocalBytes;
using model::ModelPersistence;
using replication::SessionId;
using replication::steps::kSendThenFlushedAck;

namespace {

// --- Messages in persistent memory, and recovery -----------------------------

class MessageLogTest : public ::testing::Test {
 protected:
  using Log = replication::MessageLog<ModelPersistence>;

  Log LogIn(ModelPersistence& pmem) {
    return Log(pmem, pmem.region().subspan(kUpdateRegionBytes),
               kUpdateSlotBytes, pmem.region().first(kUpdateRegionBytes));
  }
  // Puts an update there as an adapter does.
  static void Put(uint64_t update, SessionId session, std::span<std::byte> at) {
    const std::vector<uint64_t> words(kUpdateWordsOfA + 1, update);
    const auto bytes = std::as_bytes(std::span(words));
    replication::EncodeUpdateMessage(
        {.session = session,
         .sequence = update,
         .a = {PlaceOfUpdateA(update), 8 * kUpdateWordsOfA},
         .b = {0, 8},
         .bytes_of_a = bytes.first(8 * kUpdateWordsOfA),
         .bytes_of_b = bytes.last(8)},
        at);
  }
  FoundUpdates Found(ModelPersistence& pmem) {
    return FindUpdates(pmem.CutKeepingNone());
  }

  ModelPersistence pmem_{kUpdateMemoryBytes};
  Log log_ = LogIn(pmem_);
};

TEST_F(MessageLogTest, LiveMessagesAreAppliedInTheirOrder) {
  ASSERT_TRUE(log_.Begin(kUpdateSession).ok());
  Put(2, kUpdateSession, log_.At(0));
  Put(1, kUpdateSession, log_.At(1));
  EXPECT_EQ(*log_.ApplyAll(), 2u);
  EXPECT_EQ(Found(pmem_).whole, 2u);
  EXPECT_EQ(Found(pmem_).b, 2u);
  EXPECT_EQ(*log_.ApplyAll(), 0u) << "again";
}

// ML3: the one before it may have been torn, and was never acknowledged then.
TEST_F(MessageLogTest, NothingIsAppliedBehindAGap) {
  ASSERT_TRUE(log_.Begin(kUpdateSession).ok());
  Put(2, kUpdateSession, log_.At(0));
  EXPECT_EQ(*log_.ApplyAll(), 0u);
  EXPECT_EQ(Found(pmem_).b, 0u);
}

// Each word of it is missing once, over nothing and over an older message.
TEST_F(MessageLogTest, EveryTornMessageIsLeftAlone) {
  constexpr size_t kWords =
      (replication::kUpdateMessageHeaderBytes + 8 * (kUpdateWordsOfA + 1)) / 8;
  for (const bool over_older : {false, true}) {
    for (size_t missing = 0; missing < kWords; ++missing) {
      ModelPersistence pmem(kUpdateMemoryBytes);
      Log log = LogIn(pmem);
      ASSERT_TRUE(log.Begin(kUpdateSession).ok());
      std::array<std::byte, kUpdateSlotBytes> older = {};
      std::array<std::byte, kUpdateSlotBytes> newer = {};
      if (over_older) Put(7, SessionId(3), older);
      Put(1, kUpdateSession, newer);
      if (std::memcmp(&older[8 * missing], &newer[8 * missing], 8) == 0) {
        continue;  // that word is the same
      }
      std::memcpy(&newer[8 * missing], &older[8 * missing], 8);
      std::ranges::copy(newer, log.At(0).begin());
      EXPECT_EQ(*log.ApplyAll(), 0u) << "word " << missing;
      EXPECT_EQ(Found(pmem).b, 0u);
    }
  }
}

TEST_F(MessageLogTest, MessagesOfAnEarlierSessionAreDead) {
  ASSERT_TRUE(log_.Begin(SessionId(3)).ok());
  Put(1, SessionId(3), log_.At(0));
  ASSERT_EQ(*log_.ApplyAll(), 1u);
  ASSERT_TRUE(log_.Begin(kUpdateSession).ok());
  EXPECT_EQ(*log_.ApplyAll(), 0u);
}

TEST_F(MessageLogTest, PlacesOutsideTheRegionAreRefused) {
  ASSERT_TRUE(log_.Begin(kUpdateSession).ok());
  replication::EncodeUpdateMessage({.session = kUpdateSession,
                                    .sequence = 1,
                                    .a = {kUpdateRegionBytes - 4, 8},
                                    .bytes_of_a = pmem_.region().first(8)},
                                   log_.At(0));
  EXPECT_TRUE(absl::IsDataLoss(log_.ApplyAll().status()));
}

// The power goes again in the middle of it, before each primitive; what was
// begun is done again.
TEST_F(MessageLogTest, RecoveryMayBeCutAnywhere) {
  struct Cut {};
  ASSERT_TRUE(log_.Begin(kUpdateSession).ok());
  Put(1, kUpdateSession, log_.At(1));
  Put(2, kUpdateSession, log_.At(0));
  const std::vector<std::byte> before = pmem_.CutKeepingAll();
  uint64_t cuts = 0;
  ModelPersistence pmem(before);
  pmem.SetHook([&](const ModelPersistence::Event&) {
    ++cuts;
    for (const auto& image : {pmem.CutKeepingNone(), pmem.CutKeepingAll()}) {
      const FoundUpdates half = FindUpdates(image);
      EXPECT_LE(half.b, half.whole);
      ModelPersistence again(image);
      EXPECT_TRUE(LogIn(again).ApplyAll().ok());
      EXPECT_EQ(Found(again).whole, 2u);
      EXPECT_EQ(Found(again).b, 2u);
    }
  });
  EXPECT_EQ(*LogIn(pmem).ApplyAll(), 2u);
  EXPECT_GT(cuts, 12u);
}

// ML2: whenever it is cut, what is live afterwards is of one session.
TEST_F(MessageLogTest, SessionMayBeCutWhereItBegins) {
  ASSERT_TRUE(log_.Begin(SessionId(3)).ok());
  Put(1, SessionId(3), log_.At(0));
  Put(2, SessionId(3), log_.At(1));
  ASSERT_EQ(*log_.ApplyAll(), 2u);
  const std::vector<std::byte> before = pmem_.CutKeepingAll();
  ModelPersistence pmem(before);
  pmem.SetHook([&](const ModelPersistence::Event&) {
    for (const auto& image : {pmem.CutKeepingNone(), pmem.CutKeepingAll()}) {
      ModelPersistence again(image);
      EXPECT_EQ(*LogIn(again).ApplyAll(), 0u);
    }
  });
  EXPECT_TRUE(LogIn(pmem).Begin(kUpdateSession).ok());
}

// --- Credits -----------------------------------------------------------------

replication::Platform WithBuffersInPmem() {
  replication::Platform platform;
  platform.domain = replication::PersistenceDomain::kSystem;
  platform.receive_buffers = replication::ReceiveBuffers::kPmem;
  platform.transport = replication::Transport::kInfiniBand;
  return platform;
}

// P-R5: with all buffers full of what nobody applied the next update waits.
TEST(UpdateCreditsTest, BufferIsPostedAgainOnlyWhenItIsApplied) {
  SimUpdates updates(1, WithBuffersInPmem(),
                     replication::steps::kSendBothCompleted,
                     replication::UpdateKind::kCompound, kUpdateCredits + 1);
  updates.LeaveMessages();
  while (updates.Step()) {
  }
  EXPECT_EQ(updates.posted(), kUpdateCredits + 1);
  EXPECT_EQ(updates.persisted(), kUpdateCredits);
  EXPECT_EQ(updates.responder().unapplied(), kUpdateCredits);
  ASSERT_TRUE(updates.responder().ApplyReceived().ok());
  while (updates.Step()) {
  }
  EXPECT_EQ(updates.persisted(), kUpdateCredits + 1);
}

// UQ3.
TEST(UpdateCreditsTest, NoUpdateWithoutACredit) {
  SimUpdates updates(1, WithBuffersInPmem(), replication::steps::kSendCompleted,
                     replication::UpdateKind::kSingleton, kUpdateCredits + 1);
  updates.LeaveMessages();
  while (updates.persisted() < kUpdateCredits) ASSERT_TRUE(updates.Step());
  for (int i = 0; i < 100 && updates.Step(); ++i) {
  }
  EXPECT_EQ(updates.network().receivers_not_ready(), 0u);
}

// Rows without an ack: a report for half of the credits, none for an update.
TEST(UpdateCreditsTest, ComeBackByTheHalf) {
  SimUpdates updates(1, WithBuffersInPmem(),
                     replication::steps::kWriteImmediateCompleted,
                     replication::UpdateKind::kSingleton, kUpdatesMax);
  while (updates.Step()) {
  }
  EXPECT_EQ(updates.persisted(), kUpdatesMax);
  EXPECT_EQ(updates.responder().wake_ups(), 0u);
  EXPECT_LE(updates.responder().reports(), kUpdatesMax / (kUpdateCredits / 2));
  EXPECT_EQ(updates.network().receivers_not_ready(), 0u);
}

// --- What is refused ---------------------------------------------------------

class UpdateRefusalTest : public ::testing::Test {
 protected:
  static fabric::Fabric::Limits Limits() {
    fabric::Fabric::Limits limits;
    limits.sends_max = 8;
    limits.receives_max = 8;
    limits.message_bytes_max = 4096;
    return limits;
  }

  UpdateRefusalTest() : connection_(DirectFabric::Join(fabric_, peer_)) {
    key_ = *peer_.Register(pmem_.region(), fabric::RemoteAccess::kReadWrite);
    source_ = std::make_unique<UpdateSource>(fabric_);
    slots_ = *replication::MessageSlots::Make(fabric_, 1, kUpdateSlotBytes);
  }

  // On a connection of its own.
  void Start(std::span<const replication::Step> steps) {
    connection_ = DirectFabric::Join(fabric_, peer_);
    responder_ = *replication::UpdateResponder<ModelPersistence>::Start(
        pmem_, steps, UpdateTerms().ForResponder(key_, pmem_.region()), peer_,
        connection_);
    requester_ = *replication::UpdateRequester::Start(
        steps, UpdateTerms().ForRequester(key_), fabric_, connection_);
  }
  // Returns the responder's verdict on a message that somebody else made.
  absl::Status Tell(const replication::UpdateMessage& message) {
    LocalBytes slot = slots_->At(0);
    slot.bytes =
        slot.bytes.first(replication::EncodeUpdateMessage(message, slot.bytes));
    return TellBytes(slot);
  }
  absl::Status TellBytes(LocalBytes bytes) {
    EXPECT_TRUE(fabric_.PostSend(connection_, fabric::WorkId(9), bytes).ok());
    fabric_.Run();
    absl::Status taken;
    for (const fabric::Completion& completion : peer_.DrainCompletions()) {
      taken.Update(responder_->OnCompletion(completion));
    }
    return taken;
  }
  replication::UpdateMessage Good() {
    return {.session = kUpdateSession,
            .sequence = 1,
            .a = {PlaceOfUpdateA(1), 8},
            .bytes_of_a = pmem_.region().first(8)};
  }

  DirectFabric fabric_{Limits()};
  DirectFabric peer_{Limits()};
  fabric::ConnectionId connection_;
  ModelPersistence pmem_{kUpdateMemoryBytes};
  fabric::RegionKey key_;
  std::unique_ptr<UpdateSource> source_;
  std::unique_ptr<replication::MessageSlots> slots_;
  std::unique_ptr<replication::UpdateRequester> requester_;
  std::unique_ptr<replication::UpdateResponder<ModelPersistence>> responder_;
};

TEST_F(UpdateRefusalTest, MessagesThatNoRequesterSends) {
  const auto told = [this](const replication::UpdateMessage& message) {
    Start(kSendThenFlushedAck);
    return Tell(message);
  };
  EXPECT_TRUE(told(Good()).ok());
  replication::UpdateMessage message = Good();
  message.session = SessionId(3);
  EXPECT_TRUE(absl::IsDataLoss(told(message)));
  message = Good();
  message.sequence = 2;
  EXPECT_TRUE(absl::IsDataLoss(told(message)));
  message = Good();
  message.a.offset = kUpdateRegionBytes - 4;
  EXPECT_TRUE(absl::IsDataLoss(told(message)));
  message = Good();
  message.a.offset = ~uint64_t{0} - 3;
  EXPECT_TRUE(absl::IsDataLoss(told(message)));
  message = Good();
  message.bytes_of_a = {};
  EXPECT_TRUE(absl::IsDataLoss(told(message))) << "an address";
  Start(kSendThenFlushedAck);
  LocalBytes bytes = slots_->At(0);
  bytes.bytes = bytes.bytes.first(
      replication::EncodeUpdateMessage(Good(), bytes.bytes) - 8);
  EXPECT_TRUE(absl::IsDataLoss(TellBytes(bytes))) << "cut off";
}

TEST_F(UpdateRefusalTest, ImmediateOutsideTheRegion) {
  Start(replication::steps::kWriteImmediateThenAck);
  LocalBytes bytes = slots_->At(0);
  bytes.bytes = bytes.bytes.first(8);
  ASSERT_TRUE(fabric_
                  .PostWriteImmediate(connection_, fabric::WorkId(9), bytes,
                                      {key_, 0}, kUpdateRegionBytes / 8)
                  .ok());
  fabric_.Run();
  const auto completions = peer_.DrainCompletions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(responder_->OnCompletion(completions[0])));
}

TEST_F(UpdateRefusalTest, UpdatesThatTheRowHasNoPlaceFor) {
  Start(kSendThenFlushedAck);
  const auto refused =
      [this](const replication::UpdateRequester::Update& update) {
        return absl::IsInvalidArgument(requester_->Post(update)) &&
               requester_->posted() == 0;
      };
  EXPECT_TRUE(refused({.a = {}}));
  EXPECT_TRUE(refused(source_->Make(1, key_, /*is_compound=*/true)));
  LocalBytes all = slots_->At(0);
  EXPECT_TRUE(refused({.a = {all, {key_, 0}}})) << "header and bytes";
  Start(replication::steps::kSendBothThenFlushedAck);
  EXPECT_TRUE(refused(source_->Make(1, key_, /*is_compound=*/false)));
  Start(replication::steps::kWriteImmediateThenAck);
  auto update = source_->Make(1, key_, /*is_compound=*/false);
  update.a.to.offset += 4;
  EXPECT_TRUE(refused(update));
}

TEST_F(UpdateRefusalTest, RowsThatTheHostsCannotRun) {
  EXPECT_TRUE(absl::IsUnimplemented(
      replication::UpdateRequester::Start(
          replication::steps::kWriteThenAtomicThenFlush,
          UpdateTerms().ForRequester(key_), fabric_, connection_)
          .status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      replication::UpdateResponder<ModelPersistence>::Start(
          pmem_, replication::steps::kSendCompleted,
          UpdateTerms().ForResponder(key_, pmem_.region()), peer_, connection_)
          .status()));
}

TEST_F(UpdateRefusalTest, ReportsThatNoResponderSends) {
  for (const replication::UpdateReport& report :
       {replication::UpdateReport{SessionId(3), 0, 0},
        replication::UpdateReport{kUpdateSession, 0, 1}}) {
    Start(kSendThenFlushedAck);
    LocalBytes slot = slots_->At(0);
    replication::EncodeUpdateReport(
        report, slot.bytes.first<replication::kUpdateReportBytes>());
    const auto own = *replication::MessageSlots::Make(
        peer_, 1, replication::kUpdateReportBytes);
    std::ranges::copy(slot.bytes.first(replication::kUpdateReportBytes),
                      own->At(0).bytes.begin());
    ASSERT_TRUE(
        peer_.PostSend(connection_, fabric::WorkId(9), own->At(0)).ok());
    peer_.Run();
    const auto completions = fabric_.DrainCompletions();
    ASSERT_EQ(completions.size(), 1u);
    EXPECT_TRUE(absl::IsDataLoss(requester_->OnCompletion(completions[0])));
    peer_.DrainCompletions();
  }
}

TEST_F(UpdateRefusalTest, BrokenConnectionsAndMediaAreTold) {
  Start(kSendThenFlushedAck);
  fabric::Completion completion;
  completion.status = fabric::CompletionStatus::kPeerGone;
  EXPECT_TRUE(absl::IsUnavailable(requester_->OnCompletion(completion)));
  EXPECT_TRUE(absl::IsUnavailable(responder_->OnCompletion(completion)));
  Start(kSendThenFlushedAck);
  pmem_.FailFence(1);
  EXPECT_TRUE(absl::IsUnavailable(Tell(Good())));
  EXPECT_EQ(responder_->reports(), 0u) << "nothing is acknowledged";
}

}  // namespace
}  // namespace alpheus::testing
