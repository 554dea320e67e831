// SPDX-License-Identifier: Apache-2.0
// The bounds of what the software adapter keeps for a peer: each queue has one,
// and a peer that goes to it loses its own connection at most.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "log/base/random.h"
#include "replication/fabric/region_table.h"
#include "replication/fabric/tcp/outbox.h"
#include "replication/fabric/tcp/responder.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"

namespace alpheus::testing {

using fabric::tcp::kWireHeaderBytes;

namespace {

using Kind = fabric::ConnectionEvent::Kind;
using fabric::tcp::Outbox;
using fabric::tcp::Responder;
using fabric::tcp::WireHeader;
using fabric::tcp::WireOpcode;

constexpr uint64_t kWindow = uint64_t{1} << 20;
// Bytes of answers that wait: those of TRP4, and the piece that is being sent.
constexpr uint64_t kAnswersBound =
    Responder::kAnswerBytesMax + Responder::kReplyPieceBytes + kWireHeaderBytes;

// The receiving half alone, which takes whatever a peer may send.
class ResponderBoundsTest : public ::testing::Test {
 protected:
  ResponderBoundsTest() : memory_(kBytes / 8) {
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = i;
    key_ = *regions_.Register(Memory(), fabric::RemoteAccess::kAll);
  }

  std::span<std::byte> Memory() {
    return std::as_writable_bytes(std::span(memory_));
  }
  WireHeader Request(WireOpcode opcode, uint64_t length, uint64_t offset) {
    return {.opcode = opcode,
            .immediate = 0,
            .length = length,
            .key = key_.value,
            .offset = offset,
            .sequence = ++sequence_};
  }
  void Feed(const WireHeader& header) {
    responder_.OnHeader(header, &outbox_);
    std::vector<std::byte> payload(fabric::tcp::PayloadBytes(header));
    if (!payload.empty()) responder_.OnPayload(payload, &outbox_);
  }
  // The peer takes up to so many bytes.
  std::vector<std::byte> Take(size_t bytes_max) {
    std::array<iovec, 8> pieces;
    const size_t count = outbox_.Gather(regions_, pieces);
    std::vector<std::byte> taken;
    for (const iovec& piece : std::span(pieces).first(count)) {
      const auto* from = static_cast<const std::byte*>(piece.iov_base);
      const size_t room = std::min(piece.iov_len, bytes_max - taken.size());
      taken.insert(taken.end(), from, from + room);
    }
    outbox_.Consume(taken.size());
    responder_.Advance(&outbox_);
    return taken;
  }
  bool IsGood() const {
    return responder_.health() == Responder::Health::kGood;
  }

  static constexpr size_t kBytes = size_t{4} << 20;
  Random random_{1};
  fabric::RegionTable regions_{random_};
  std::vector<uint64_t> memory_;
  fabric::RegionKey key_;
  std::deque<fabric::Completion> completions_;
  uint64_t kept_bytes_ = 0;
  Outbox outbox_;
  Responder responder_{fabric::ConnectionId(1), kWindow, regions_,
                       &completions_, &kept_bytes_};
  uint64_t sequence_ = 0;
};

TEST_F(ResponderBoundsTest, LongReplyIsMadeAsItIsTaken) {
  Feed(Request(WireOpcode::kRead, kBytes - 8, 8));
  std::vector<std::byte> stream;
  while (!outbox_.empty()) {
    EXPECT_LE(outbox_.answer_bytes(), kAnswersBound);
    const auto some = Take(100'000);
    stream.insert(stream.end(), some.begin(), some.end());
  }
  ASSERT_EQ(stream.size(), kWireHeaderBytes + kBytes - 8);
  EXPECT_TRUE(std::ranges::equal(std::span(stream).subspan(kWireHeaderBytes),
                                 Memory().subspan(8)));
  EXPECT_EQ(responder_.executed(), 1U);
  EXPECT_EQ(outbox_.answer_bytes(), 0U);
}

TEST_F(ResponderBoundsTest, RepliesThatNobodyTakesWait) {
  for (int i = 0; i < 1000; ++i) {
    Feed(Request(WireOpcode::kRead, 100'000, 0));
    EXPECT_LE(outbox_.answer_bytes(), kAnswersBound);
  }
  EXPECT_TRUE(IsGood());
  EXPECT_LT(responder_.executed(), 10U);
  while (!outbox_.empty()) Take(1 << 20);
  EXPECT_EQ(responder_.executed(), 1000U);
  EXPECT_EQ(kept_bytes_, 0U);
}

TEST_F(ResponderBoundsTest, AtomicsWhoseAnswersNobodyTakesWait) {
  constexpr uint64_t kCount = 12'000;
  for (uint64_t i = 0; i < kCount; ++i) {
    Feed(Request(WireOpcode::kFetchAdd, 8, 0));
    EXPECT_LE(outbox_.answer_bytes(), kAnswersBound);
  }
  EXPECT_TRUE(IsGood());
  EXPECT_LT(responder_.executed(), kCount);
  while (!outbox_.empty()) Take(1 << 20);
  EXPECT_EQ(responder_.executed(), kCount);
}

// FB1: a write behind a read that waits must not show in it.
TEST_F(ResponderBoundsTest, WriteWaitsBehindAReplyThatIsNotWhole) {
  Feed(Request(WireOpcode::kRead, kBytes, 0));
  Feed(Request(WireOpcode::kWrite, 8, kBytes - 8));
  std::vector<std::byte> stream;
  while (!outbox_.empty()) stream = Take(1 << 20);
  EXPECT_EQ(fabric::tcp::GetWord(&stream[stream.size() - 8]), kBytes / 8 - 1);
  EXPECT_EQ(memory_.back(), 0U);
  EXPECT_EQ(responder_.executed(), 2U);
}

TEST_F(ResponderBoundsTest, RegionThatGoesWithinAReplyBreaksTheConnection) {
  Feed(Request(WireOpcode::kRead, kBytes, 0));
  ASSERT_TRUE(responder_.is_in_reply());
  ASSERT_TRUE(regions_.Deregister(key_).ok());
  while (IsGood() && !outbox_.empty()) Take(1 << 20);
  EXPECT_EQ(responder_.health(), Responder::Health::kBroken);
}

TEST_F(ResponderBoundsTest, MoreThanAWindowBehindAWaitingRequestIsNonsense) {
  Feed(Request(WireOpcode::kSend, 8, 0));
  uint64_t sent = 0;
  for (; IsGood() && sent < 2 * kWindow; sent += 64'000) {
    Feed(Request(WireOpcode::kWrite, 64'000, 0));
    EXPECT_LE(kept_bytes_, kWindow + 64'000);
  }
  EXPECT_EQ(responder_.health(), Responder::Health::kMalformed);
}

// It could only be kept whole.
TEST_F(ResponderBoundsTest, SendLongerThanTheWindowWaitsForNoReceive) {
  responder_.OnHeader(Request(WireOpcode::kSend, 2 * kWindow, 0), &outbox_);
  EXPECT_EQ(responder_.health(), Responder::Health::kFailed);
  EXPECT_EQ(responder_.failure(), fabric::tcp::WireFailure::kReceiverNotReady);
  EXPECT_EQ(kept_bytes_, 0U);
}

// A stream that never comes to its end: each receive takes one send, and two
// more have come.
TEST_F(ResponderBoundsTest, WhatWasExecutedIsNotKept) {
  constexpr uint64_t kSendBytes = 1000;
  std::vector<std::byte> into(kSendBytes);
  const fabric::RegionKey own =
      *regions_.Register(into, fabric::RemoteAccess::kNone);
  for (int i = 0; i < 20; ++i) Feed(Request(WireOpcode::kSend, kSendBytes, 0));
  for (int i = 0; i < 5000; ++i) {
    responder_.PostReceive(fabric::WorkId(1), {own, into}, &outbox_);
    Feed(Request(WireOpcode::kSend, kSendBytes, 0));
    ASSERT_LE(kept_bytes_, 60 * kSendBytes);
  }
  EXPECT_TRUE(IsGood());
  EXPECT_EQ(responder_.executed(), 5000U);
}

TEST_F(ResponderBoundsTest, FailureForgetsWhatWasKept) {
  Feed(Request(WireOpcode::kSend, 8, 0));
  Feed(Request(WireOpcode::kWrite, 64'000, 0));
  EXPECT_GT(kept_bytes_, 64'000U);
  responder_.Fail();
  EXPECT_EQ(kept_bytes_, 0U);
}

// --- A whole adapter
// ----------------------------------------------------------

class TcpBoundsTest : public TcpFabricTest {
 protected:
  static WireHeader Ping() {
    return {.opcode = WireOpcode::kPing,
            .immediate = 0,
            .length = 0,
            .key = 0,
            .offset = 0,
            .sequence = 0};
  }
  static std::vector<std::byte> Pings(size_t count) {
    const auto one = fabric::tcp::EncodeHeader(Ping());
    std::vector<std::byte> all;
    for (size_t i = 0; i < count; ++i) {
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
};

// TCN2. An unauthenticated client that has not even said hello.
TEST_F(TcpBoundsTest, OnePongAnswersAllPingsThatCame) {
  constexpr size_t kPings = 20'000;
  const fabric::tcp::Descriptor raw = ConnectRaw();
  SendRaw(raw, Pings(kPings));
  world_.clock().Forward(2 * world_.options().limits.retry_ns);
  const auto pongs = ReceiveRaw(raw, kPings * kWireHeaderBytes);
  EXPECT_TRUE(is_closed_);  // it said nothing in time
  EXPECT_GE(pongs.size(), kWireHeaderBytes);
  EXPECT_LE(pongs.size(), kPings / 20 * kWireHeaderBytes);
}

// LVT3. It goes on talking, so it is not silent.
TEST_F(TcpBoundsTest, PeerThatTakesNoAnswersIsGone) {
  const fabric::tcp::Descriptor raw = ConnectRaw();
  AcceptRaw(raw);
  WireHeader read{.opcode = WireOpcode::kRead,
                  .immediate = 0,
                  .length = 1 << 20,
                  .key = key_[1].value,
                  .offset = 0,
                  .sequence = 0};
  for (read.sequence = 1; read.sequence <= 64; ++read.sequence) {
    SendRaw(raw, RawMessage(read));
  }
  for (int look = 0; look < 8; ++look) {
    EXPECT_LE(fabric(1).counters().kept_bytes, 64 * kWireHeaderBytes);
    auto ping = Pings(1);
    iovec piece{ping.data(), ping.size()};
    fabric::tcp::SendSome(raw, {&piece, 1});
    for (int turn = 0; turn < 20; ++turn) Poll(1);
    world_.clock().Forward(world_.options().limits.retry_ns / 4);
  }
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
  EXPECT_EQ(fabric(1).counters().rejected, 0U);
}

// Several together have this host keep no more than it may.
TEST_F(TcpBoundsTest, WhatAllConnectionsKeepIsBounded) {
  const uint64_t bound = world_.options().kept_bytes_max;
  const uint64_t window = world_.options().window_bytes;
  std::vector<fabric::tcp::Descriptor> raws;
  for (uint64_t i = 0; i < 2 * bound / window; ++i) {
    raws.push_back(ConnectRaw());
    AcceptRaw(raws.back());
    WireHeader send{.opcode = WireOpcode::kSend,
                    .immediate = 0,
                    .length = window - 2 * kWireHeaderBytes,
                    .key = 0,
                    .offset = 0,
                    .sequence = 1};
    auto message = RawMessage(send);
    // Bytes that are not read any more stay with the kernel.
    std::span<std::byte> rest = message;
    for (int turn = 0; turn < 1000 && !rest.empty(); ++turn) {
      iovec piece{rest.data(), rest.size()};
      rest =
          rest.subspan(fabric::tcp::SendSome(raws.back(), {&piece, 1}).bytes);
      Poll(1);
    }
  }
  const uint64_t kept = fabric(1).counters().kept_bytes;
  EXPECT_GE(kept, bound);
  EXPECT_LE(kept, bound + (uint64_t{1} << 20));  // a buffer more
  // They fail when their receives are late, and nothing is kept any more.
  for (int look = 0; look < 8; ++look) {
    world_.clock().Forward(world_.options().receiver_wait_ns / 4);
    for (int turn = 0; turn < 20; ++turn) Poll(1);
  }
  EXPECT_EQ(fabric(1).counters().kept_bytes, 0U);
}

}  // namespace
}  // namespace alpheus::testing
