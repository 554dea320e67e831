// SPDX-License-Identifier: Apache-2.0
// A peer's ring that is read in pieces from a node that says what a test wants
// it to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "recovery/scrub/record_repair.h"
#include "replication/wire/message_slots.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using recovery::Fetch;
using recovery::PeerRing;

namespace {

using ::testing::HasSubstr;

constexpr Uuid kTheCluster{1, 2};
constexpr Uuid kTheLog{3, 4};
constexpr NodeId kThePeer{2};
constexpr uint64_t kCapacity = 3 * uint64_t{recovery::kFetchBytesMax};

std::byte ByteAt(uint64_t offset) {
  return static_cast<std::byte>(offset % kCapacity / 7);
}

class PeerRingTest : public ::testing::Test {
 protected:
  using StateReport = std::function<recovery::Message(const Fetch& fetch)>;

  PeerRingTest() : network_(model::SimOptions{}) {
    address_ = *network_.fabric(0).Listen("sim:0:7000");
  }

  // Returns the node's bytes for a request, at most `bytes_max` of them.
  static recovery::Fetched Shown(const Fetch& fetch, uint64_t bytes_max) {
    recovery::Fetched shown{fetch.from, {}};
    const uint64_t bytes = std::min<uint64_t>(fetch.bytes, bytes_max);
    for (uint64_t i = 0; i < bytes; ++i) {
      shown.bytes.push_back(ByteAt(fetch.from.value + i));
    }
    return shown;
  }

  // Reads until it is through, or was told what can't be.
  std::unique_ptr<PeerRing> Read(const PeerRing::Range& range,
                                 StateReport answer,
                                 uint64_t capacity = kCapacity) {
    answer_ = std::move(answer);
    capacity_ = capacity;
    recovery::ControlCall::Options at;
    at.address = address_;
    at.node = kThePeer;
    at.hello = {kTheCluster, kTheLog, {NodeId(1), 1}};
    auto ring =
        std::make_unique<PeerRing>(network_.fabric(1), at, kCapacity, range);
    Await(*ring);
    return ring;
  }
  void Await(PeerRing& ring) {
    for (int i = 0; i < 10'000 && ring.is_reading() && ring.status().ok();
         ++i) {
      PollNode();
      std::vector<fabric::Completion> completions(16);
      std::vector<ConnectionEvent> events;
      const size_t count = network_.fabric(1).Poll(completions, &events);
      for (const ConnectionEvent& event : events) ring.OnConnectionEvent(event);
      for (size_t c = 0; c < count; ++c) ring.OnCompletion(completions[c]);
      network_.Run(10'000);
    }
  }
  void PollNode() {
    std::vector<fabric::Completion> completions(16);
    std::vector<ConnectionEvent> events;
    fabric::Fabric& fabric = network_.fabric(0);
    const size_t count = fabric.Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      if (event.kind != ConnectionEvent::Kind::kRequested) continue;
      connection_ = event.connection;
      slots_ = *replication::MessageSlots::Make(fabric, 2,
                                                recovery::kMessageBytesMax);
      PostReceive();
      const recovery::ServerHello server_hello{kThePeer, 101, capacity_,
                                               Epoch(5), 1};
      EXPECT_TRUE(
          fabric.Accept(connection_, recovery::EncodeServerHello(server_hello))
              .ok());
    }
    for (size_t i = 0; i < count; ++i) {
      if (completions[i].operation == fabric::Operation::kReceive &&
          completions[i].status == fabric::CompletionStatus::kOk) {
        Reply(completions[i].bytes);
      }
    }
  }
  void Reply(uint64_t bytes) {
    const auto request =
        recovery::DecodeMessage(kTheLog, slots_->At(0).bytes.first(bytes));
    ASSERT_TRUE(request.ok() && std::holds_alternative<Fetch>(*request));
    asked_.push_back(std::get<Fetch>(*request));
    PostReceive();
    const std::vector<std::byte> reply =
        recovery::EncodeMessage(kTheLog, answer_(asked_.back()));
    fabric::LocalBytes slot = slots_->At(1);
    std::ranges::copy(reply, slot.bytes.begin());
    slot.bytes = slot.bytes.first(reply.size());
    EXPECT_TRUE(
        network_.fabric(0).PostSend(connection_, fabric::WorkId(2), slot).ok());
  }
  void PostReceive() {
    EXPECT_TRUE(network_.fabric(0)
                    .PostReceive(connection_, fabric::WorkId(1), slots_->At(0))
                    .ok());
  }

  static bool Holds(const PeerRing& ring, RingOffset from, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) {
      if (*ring.ring().At(from + i) != ByteAt(from.value + i)) return false;
    }
    return true;
  }

  model::SimNetwork network_;
  std::string address_;
  fabric::ConnectionId connection_;
  std::unique_ptr<replication::MessageSlots> slots_;
  StateReport answer_;
  uint64_t capacity_ = kCapacity;  // that the node says
  std::vector<Fetch> asked_;
};

TEST_F(PeerRingTest, IsReadInPiecesRoundItsEnd) {
  const PeerRing::Range range{RingOffset(2 * kCapacity - 64 * 700),
                              2 * uint64_t{recovery::kFetchBytesMax} + 100};
  const auto ring =
      Read(range, [](const Fetch& fetch) { return Shown(fetch, ~0ULL); });
  ASSERT_TRUE(ring->status().ok()) << ring->status();
  EXPECT_EQ(asked_.size(), 3u);
  EXPECT_EQ(ring->read_end(), range.from + range.bytes);
  EXPECT_TRUE(Holds(*ring, range.from, range.bytes));
  // On the same connection.
  ring->Read({RingOffset(640), 64});
  Await(*ring);
  EXPECT_EQ(asked_.back(), (Fetch{RingOffset(640), 64}));
  EXPECT_TRUE(Holds(*ring, RingOffset(640), 64));
}

TEST_F(PeerRingTest, PieceThatIsShorterIsTheLastOne) {
  const auto ring = Read({RingOffset(0), kCapacity}, [](const Fetch& fetch) {
    return Shown(fetch, fetch.from == RingOffset(0) ? ~0ULL : 10);
  });
  ASSERT_TRUE(ring->status().ok()) << ring->status();
  EXPECT_EQ(asked_.size(), 2u);
  EXPECT_TRUE(ring->has_answered());
  EXPECT_EQ(ring->read_end(), RingOffset(recovery::kFetchBytesMax + 10));
  EXPECT_TRUE(Holds(*ring, RingOffset(0), recovery::kFetchBytesMax + 10));
}

TEST_F(PeerRingTest, WhatNoNodeSaysEndsIt) {
  const StateReport answers[] = {
      [](const Fetch& fetch) { return Shown({fetch.from, 101}, ~0ULL); },
      [](const Fetch& fetch) { return Shown({fetch.from + 64, 100}, ~0ULL); },
      [](const Fetch&) { return recovery::Message(recovery::Released{}); }};
  for (const StateReport& answer : answers) {
    const auto ring = Read({RingOffset(64), 100}, answer);
    EXPECT_TRUE(absl::IsDataLoss(ring->status())) << ring->status();
    EXPECT_FALSE(ring->has_answered());
    EXPECT_EQ(*ring->ring().At(RingOffset(128)), std::byte{0});
  }
  const auto failed = Read({RingOffset(64), 100}, [](const Fetch&) {
    return recovery::Message(
        recovery::Failed{absl::UnavailableError("not now")});
  });
  EXPECT_TRUE(absl::IsUnavailable(failed->status())) << failed->status();
}

TEST_F(PeerRingTest, RingOfAnotherSizeIsOfNoUse) {
  const auto ring = Read(
      {RingOffset(64), 100},
      [](const Fetch& fetch) { return Shown(fetch, ~0ULL); }, 2 * kCapacity);
  EXPECT_TRUE(absl::IsFailedPrecondition(ring->status()));
  EXPECT_THAT(ring->status().message(), HasSubstr("rings of one size"));
}

}  // namespace
}  // namespace alpheus::testing
