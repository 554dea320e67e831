// SPDX-License-Identifier: Apache-2.0
// Both ends of a plan on a simulated network, with a power cut at the responder
// in every state that a run has: between any two events of the network, and
// before each primitive of its memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "log/base/random.h"
#include "replication/persist/execute/persist_requester.h"
#include "replication/persist/execute/persist_responder.h"
#include "replication/persist/plan/planner.h"
#include "replication/persist/platform/method_steps.h"
#include "replication/wire/message_slots.h"
#include "tests/support/fabrics/direct_fabric.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

using fabric::Completion;
using fabric::ConnectionEvent;
using model::ModelPersistence;
using replication::PersistRequester;
using replication::WrittenBytes;

namespace {

constexpr uint64_t kRingBytes = 4096;
constexpr uint64_t kMessageBytes = 256;
// Bytes of the updates, one behind the other from kStart on: of less than a
// message, of several; the fourth goes round the end of the ring.
constexpr uint64_t kUpdateBytes[] = {64, 640, 256, 1024, 128, 832};
constexpr uint64_t kUpdates = std::size(kUpdateBytes);
constexpr uint64_t kStart = kRingBytes - 1280;

uint64_t BeginOf(uint64_t update) {
  uint64_t begin = kStart;
  for (uint64_t i = 0; i < update; ++i) begin += kUpdateBytes[i];
  return begin;
}

// Bytes [begin, end) of a ring, of which the second part may be empty.
template <class Byte>
std::array<std::span<Byte>, 2> PartsOf(std::span<Byte> ring, uint64_t begin,
                                       uint64_t end) {
  const uint64_t place = begin % kRingBytes;
  const uint64_t until_end = std::min(end - begin, kRingBytes - place);
  return {ring.subspan(place, until_end),
          ring.subspan(0, end - begin - until_end)};
}

class PersistWorld {
 public:
  PersistWorld(uint64_t seed, const replication::Plan& requester,
               const replication::Plan& responder)
      : random_(seed), network_(OptionsOf(seed)), pmem_(kRingBytes) {
    for (size_t i = 0; i < kRingBytes; ++i) {
      own_.push_back(static_cast<std::byte>(random_.Next() | 1));
    }
    Connect();
    requester_ = std::make_unique<PersistRequester>(
        requester, network_.fabric(0), at_requester_);
    responder_ =
        std::make_unique<replication::PersistResponder<ModelPersistence>>(
            pmem_, responder);
    pmem_.SetHook([this](const ModelPersistence::Event&) { CutThePower(); });
  }

  // Posts all updates, and lets everything happen.
  void Run() {
    for (uint64_t update = 0; update < kUpdates; ++update) Post(update);
    do {
      CutThePower();
      Take();
    } while (network_.Step() || told_ != acked_);
    CutThePower();
  }

  // Updates that an ack had been sent for and a power cut took.
  uint64_t lost() const { return lost_; }
  uint64_t cuts() const { return cuts_; }
  const PersistRequester& requester() const { return *requester_; }

 private:
  static model::SimOptions OptionsOf(uint64_t seed) {
    model::SimOptions options;
    options.seed = seed;
    options.hosts = 2;
    options.packet_bytes = 64;
    options.limits.message_bytes_max = kMessageBytes;
    return options;
  }

  fabric::ConnectionId Await(int host, ConnectionEvent::Kind kind) {
    for (;;) {
      std::vector<ConnectionEvent> events;
      network_.fabric(host).Poll({}, &events);
      for (const ConnectionEvent& event : events) {
        if (event.kind == kind) return event.connection;
      }
      EXPECT_TRUE(network_.Step());
    }
  }

  void Connect() {
    fabric::Fabric& requester = network_.fabric(0);
    fabric::Fabric& responder = network_.fabric(1);
    const std::string address =
        *responder.Listen(model::SimNetwork::Address(1, 0));
    at_requester_ = *requester.Connect(address, "", Deadline());
    at_responder_ = Await(1, ConnectionEvent::Kind::kRequested);
    own_key_ = *requester.Register(own_, fabric::RemoteAccess::kNone);
    key_ = *responder.Register(pmem_.region(), fabric::RemoteAccess::kWrite);
    acks_ = *replication::MessageSlots::Make(responder, 2 * kUpdates,
                                             sizeof(uint64_t));
    received_ = *replication::MessageSlots::Make(requester, 2 * kUpdates,
                                                 sizeof(uint64_t));
    for (uint64_t i = 0; i < kUpdates; ++i) {
      EXPECT_TRUE(
          responder.PostReceive(at_responder_, fabric::WorkId(i), {}).ok());
      EXPECT_TRUE(
          requester
              .PostReceive(at_requester_, fabric::WorkId(i), received_->At(i))
              .ok());
    }
    EXPECT_TRUE(responder.Accept(at_responder_, "").ok());
    Await(0, ConnectionEvent::Kind::kEstablished);
  }

  void Post(uint64_t update) {
    std::vector<PersistRequester::Range> ranges;
    for (const auto& part :
         PartsOf<std::byte>(own_, BeginOf(update), BeginOf(update + 1))) {
      if (part.empty()) continue;
      ranges.push_back(
          {{own_key_, part},
           {key_, static_cast<uint64_t>(part.data() - own_.data())}});
    }
    EXPECT_TRUE(
        requester_->Post(ranges, static_cast<uint32_t>(update + 1)).ok());
  }

  void Take() {
    std::array<Completion, 64> completions;
    std::vector<ConnectionEvent> events;
    size_t count = network_.fabric(1).Poll(completions, &events);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(completions[i].status, fabric::CompletionStatus::kOk);
      if (completions[i].operation == fabric::Operation::kReceiveImmediate) {
        told_ = completions[i].immediate;
      }
    }
    // Some are persisted by themselves, others together.
    if (told_ != acked_ && random_.Next() % 4 != 0) Respond();
    count = network_.fabric(0).Poll(completions, &events);
    for (size_t i = 0; i < count; ++i) TakeOfRequester(completions[i]);
  }

  void Respond() {
    const auto parts =
        PartsOf<std::byte>(pmem_.region(), BeginOf(acked_), BeginOf(told_));
    const WrittenBytes written[] = {parts[0], parts[1]};
    EXPECT_TRUE(responder_->Respond(written, [this] { return Ack(); }).ok());
  }

  absl::Status Ack() {
    const fabric::LocalBytes message = acks_->At(told_);
    std::memcpy(message.bytes.data(), &told_, sizeof(told_));
    acked_ = told_;
    return network_.fabric(1).PostSend(at_responder_, fabric::WorkId(),
                                       message);
  }

  void TakeOfRequester(const Completion& completion) {
    EXPECT_EQ(completion.status, fabric::CompletionStatus::kOk);
    if (completion.operation != fabric::Operation::kReceive) {
      return requester_->OnCompletion(completion);
    }
    uint64_t acked = 0;
    std::memcpy(&acked, received_->At(completion.work.value).bytes.data(),
                sizeof(acked));
    while (requester_->persisted() < acked) requester_->OnAck();
  }

  // Nothing more of memory is left than must be; an ack that was sent arrives
  // all the same.
  void CutThePower() {
    ++cuts_;
    EXPECT_LE(requester_->persisted(), acked_);
    const std::span<const std::byte> left = pmem_.persistent();
    for (uint64_t update = 0; update < acked_; ++update) {
      const uint64_t begin = BeginOf(update);
      const uint64_t end = BeginOf(update + 1);
      const auto here = PartsOf<const std::byte>(own_, begin, end);
      const auto there = PartsOf<const std::byte>(left, begin, end);
      lost_ += std::ranges::equal(here[0], there[0]) &&
                       std::ranges::equal(here[1], there[1])
                   ? 0
                   : 1;
    }
  }

  Random random_;
  model::SimNetwork network_;
  ModelPersistence pmem_;  // the responder's ring
  std::vector<std::byte> own_;
  fabric::RegionKey own_key_;
  fabric::RegionKey key_;
  fabric::ConnectionId at_requester_;
  fabric::ConnectionId at_responder_;
  std::unique_ptr<replication::MessageSlots> acks_;
  std::unique_ptr<replication::MessageSlots> received_;
  std::unique_ptr<PersistRequester> requester_;
  std::unique_ptr<replication::PersistResponder<ModelPersistence>> responder_;
  uint64_t told_ = 0;   // updates that immediates announced
  uint64_t acked_ = 0;  // of these, an ack was handed to the adapter
  uint64_t lost_ = 0;
  uint64_t cuts_ = 0;
};

replication::Plan RecordPlan() { return *replication::MakeRecordPlan({}); }

class PersistExecutorTest : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PersistExecutorTest,
                         ::testing::Range(uint64_t{1}, uint64_t{17}));

TEST_P(PersistExecutorTest, AckedUpdatesOutliveACutInEveryState) {
  PersistWorld world(GetParam(), RecordPlan(), RecordPlan());
  world.Run();
  EXPECT_EQ(world.lost(), 0u);
  EXPECT_EQ(world.requester().persisted(), kUpdates);
  EXPECT_EQ(world.requester().posted(), kUpdates);
  EXPECT_EQ(world.requester().posts_in_flight(), 0u);
  EXPECT_GT(world.cuts(), 100u);
}

// The oracle is alive: rows that lack a step, or have it too late, lose.
TEST_P(PersistExecutorTest, WeakenedRowsLoseWhatTheyAcknowledge) {
  constexpr replication::Step kNoFlush[] = {
      replication::steps::kReceiveAddressA, replication::steps::kSendAck};
  constexpr replication::Step kLateFlush[] = {
      replication::steps::kReceiveAddressA, replication::steps::kSendAck,
      replication::steps::kFlushA};
  for (const std::span<const replication::Step> steps :
       {std::span<const replication::Step>(kNoFlush),
        std::span<const replication::Step>(kLateFlush)}) {
    PersistWorld world(GetParam(), RecordPlan(), {"weakened", steps});
    world.Run();
    EXPECT_GT(world.lost(), 0u)
        << replication::PlanToString({"weakened", steps});
  }
}

// --- The requester by itself -------------------------------------------------

class PersistRequesterTest : public ::testing::Test {
 protected:
  static fabric::Fabric::Limits Limits() {
    fabric::Fabric::Limits limits;
    limits.sends_max = 4;
    limits.receives_max = 4;
    limits.message_bytes_max = kMessageBytes;
    return limits;
  }

  PersistRequesterTest()
      : connection_(DirectFabric::Join(fabric_, peer_)),
        requester_(RecordPlan(), fabric_, connection_) {
    key_ = *fabric_.Register(bytes_, fabric::RemoteAccess::kNone);
    to_ = *peer_.Register(there_, fabric::RemoteAccess::kWrite);
    EXPECT_TRUE(peer_.PostReceive(connection_, fabric::WorkId(), {}).ok());
  }

  absl::Status Post(uint64_t offset, uint64_t bytes) {
    const PersistRequester::Range range{
        {key_, std::span(bytes_).subspan(offset, bytes)}, {to_, offset}};
    return requester_.Post({&range, 1}, 7);
  }

  DirectFabric fabric_{Limits()};
  DirectFabric peer_{Limits()};
  fabric::ConnectionId connection_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kRingBytes);
  std::vector<std::byte> there_ = std::vector<std::byte>(kRingBytes);
  fabric::RegionKey key_;
  fabric::RegionKey to_;
  PersistRequester requester_;
};

TEST_F(PersistRequesterTest, OneImmediateForAllMessagesOfAnUpdate) {
  ASSERT_TRUE(Post(64, 2 * kMessageBytes + 64).ok());
  EXPECT_EQ(requester_.posts_in_flight(), 3u);
  EXPECT_LE(3u, requester_.PostsMax(2 * kMessageBytes + 64, 1));
  fabric_.Run();
  EXPECT_EQ(fabric_.executed(fabric::Operation::kWrite), 2u);
  EXPECT_EQ(fabric_.executed(fabric::Operation::kWriteImmediate), 1u);
  for (const Completion& completion : fabric_.DrainCompletions()) {
    requester_.OnCompletion(completion);
  }
  EXPECT_EQ(requester_.posts_in_flight(), 0u);
  const std::vector<Completion> told = peer_.DrainCompletions();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].immediate, 7u);
  EXPECT_EQ(told[0].bytes, 64u);
  // Visible there is not persisted there.
  EXPECT_EQ(requester_.persisted(), 0u);
  requester_.OnAck();
  EXPECT_EQ(requester_.persisted(), 1u);
}

TEST_F(PersistRequesterTest, UpdateThatFillsItsMessagesHasNoEmptyOne) {
  ASSERT_TRUE(Post(0, 2 * kMessageBytes).ok());
  EXPECT_EQ(requester_.posts_in_flight(), 2u);
}

TEST_F(PersistRequesterTest, RefusedPostIsNoUpdate) {
  EXPECT_TRUE(absl::IsResourceExhausted(Post(0, 5 * kMessageBytes)));
  EXPECT_EQ(requester_.posted(), 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(Post(0, 64)));
  EXPECT_EQ(requester_.posted(), 0u);
}

using PersistRequesterDeathTest = PersistRequesterTest;

TEST_F(PersistRequesterDeathTest, AckWithoutAnUpdate) {
  EXPECT_DEATH(requester_.OnAck(), "PQ1");
}

TEST_F(PersistRequesterDeathTest, FailedCompletion) {
  Completion completion;
  completion.status = fabric::CompletionStatus::kFlushed;
  EXPECT_DEATH(requester_.OnCompletion(completion), "session is broken");
}

TEST_F(PersistRequesterDeathTest, PlanThatNothingEnds) {
  constexpr replication::Step kNoAck[] = {replication::steps::kWriteImmediateA};
  EXPECT_DEATH(PersistRequester({"weakened", kNoAck}, fabric_, connection_),
               "PQ1");
}

TEST_F(PersistRequesterDeathTest, PlanThatIsNotBuiltIn) {
  EXPECT_DEATH(
      PersistRequester({"another cell", replication::steps::kWriteThenAck},
                       fabric_, connection_),
      "left out");
}

// --- The responder by itself -------------------------------------------------

class PersistResponderTest : public ::testing::Test {
 protected:
  absl::Status Respond(std::span<const WrittenBytes> written) {
    return responder_.Respond(written, [this] {
      ++acks_;
      return ack_;
    });
  }

  ModelPersistence pmem_{kRingBytes};
  replication::PersistResponder<ModelPersistence> responder_{pmem_,
                                                             RecordPlan()};
  int acks_ = 0;
  absl::Status ack_;
};

TEST_F(PersistResponderTest, OneFenceForTwoPiecesAndNoneForNothing) {
  const WrittenBytes two[] = {pmem_.region().first(64),
                              pmem_.region().last(64)};
  ASSERT_TRUE(Respond(two).ok());
  EXPECT_EQ(pmem_.fence_count(), 1u);
  const WrittenBytes none[] = {{}, {}};
  ASSERT_TRUE(Respond(none).ok());
  EXPECT_EQ(pmem_.fence_count(), 1u);
  EXPECT_EQ(acks_, 2);
}

TEST_F(PersistResponderTest, FailedFenceAcknowledgesNothing) {
  pmem_.FailFence(1);
  const WrittenBytes written[] = {pmem_.region().first(64)};
  EXPECT_TRUE(absl::IsUnavailable(Respond(written)));
  EXPECT_EQ(acks_, 0);
}

TEST_F(PersistResponderTest, FailedAckIsTold) {
  ack_ = absl::DataLossError("no record");
  const WrittenBytes written[] = {pmem_.region().first(64)};
  EXPECT_EQ(Respond(written), ack_);
}

using PersistResponderDeathTest = PersistResponderTest;

TEST_F(PersistResponderDeathTest, PlanThatIsNotBuiltIn) {
  EXPECT_DEATH(replication::PersistResponder<ModelPersistence>(
                   pmem_, {"another cell", replication::steps::kSendThenAck}),
               "left out");
}

}  // namespace
}  // namespace alpheus::testing
