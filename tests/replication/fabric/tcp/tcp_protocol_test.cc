// SPDX-License-Identifier: Apache-2.0
// The software adapter and peers that keep to
// docs/design/fabric.md#the-wire-of-the-adapter-over-tcp-version-1 or break it;
// and its costs in system calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/base/random.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"

namespace alpheus::testing {

using fabric::UnauthenticatedEnd;
using fabric::WorkId;
using fabric::tcp::Descriptor;
using fabric::tcp::kWireHeaderBytes;

namespace {

using Kind = fabric::ConnectionEvent::Kind;
using fabric::tcp::WireHeader;
using fabric::tcp::WireOpcode;

class TcpProtocolTest : public TcpFabricTest {
 protected:
  WireHeader Request(WireOpcode opcode, uint64_t length, uint64_t offset,
                     uint64_t sequence) {
    return {.opcode = opcode,
            .immediate = 0,
            .length = length,
            .key = key_[1].value,
            .offset = offset,
            .sequence = sequence};
  }
  static WireHeader Answer(WireOpcode opcode, uint64_t length,
                           uint64_t sequence) {
    return {.opcode = opcode,
            .immediate = 0,
            .length = length,
            .key = 0,
            .offset = 0,
            .sequence = sequence};
  }
  std::optional<WireHeader> ReceiveHeader(const Descriptor& raw) {
    const auto bytes = ReceiveRaw(raw, kWireHeaderBytes);
    if (bytes.size() < kWireHeaderBytes) return {};
    return fabric::tcp::DecodeHeader(
        std::span(bytes).first<kWireHeaderBytes>(),
        {.message_bytes_max = 1 << 20, .private_bytes_max = 0});
  }
  uint64_t Rejected() { return fabric(1).counters().rejected; }
};

// --- What a peer may ask for ------------------------------------------------

TEST_F(TcpProtocolTest, RequestWithoutAHandshakeTouchesNothing) {
  const Descriptor raw = ConnectRaw();
  SendRaw(raw, RawMessage(Request(WireOpcode::kWrite, 64, 0, 1)));
  ReceiveRaw(raw, 1);
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(Rejected(), 1U);
  EXPECT_EQ(Memory(1)[0], std::byte{0});
}

// TRP1.
TEST_F(TcpProtocolTest, GapInTheNumbersBreaksTheConnection) {
  const Descriptor raw = ConnectRaw();
  AcceptRaw(raw);
  SendRaw(raw, RawMessage(Request(WireOpcode::kWrite, 8, 0, 2)));
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
  EXPECT_EQ(Rejected(), 1U);
  EXPECT_EQ(Memory(1)[0], std::byte{0});
}

// FB4; own requests can't get there, PostFetchAdd refuses them.
TEST_F(TcpProtocolTest, AtomicBesideAWordIsRefused) {
  const Descriptor raw = ConnectRaw();
  AcceptRaw(raw);
  SendRaw(raw, RawMessage(Request(WireOpcode::kFetchAdd, 8, 4, 1)));
  const auto answer = ReceiveHeader(raw);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->opcode, WireOpcode::kNak);
  EXPECT_EQ(answer->immediate,
            static_cast<uint32_t>(fabric::tcp::WireFailure::kRemoteAccess));
  EXPECT_EQ(answer->sequence, 1U);
  EXPECT_EQ(memory_[1][0], 0U);
  EXPECT_EQ(memory_[1][1], 0U);
}

// FB2, where the bytes come in many pieces.
TEST_F(TcpProtocolTest, ImmediateOfALargeWriteComesBehindItsBytes) {
  constexpr size_t kLarge = size_t{8} << 20;
  Connect();
  std::ranges::fill(memory_[0], ~uint64_t{0});
  ASSERT_TRUE(fabric(1).PostReceive(at_[1], WorkId(7), {}).ok());
  ASSERT_TRUE(
      fabric(0)
          .PostWriteImmediate(at_[0], WorkId(1), Local(0, 0, kLarge), At(0), 5)
          .ok());
  ASSERT_TRUE(AwaitCompletions(1, 1));
  EXPECT_EQ(completions_[1][0].bytes, kLarge);
  EXPECT_EQ(memory_[1][kLarge / 8 - 1], ~uint64_t{0});
}

TEST_F(TcpProtocolTest, PingIsAnsweredBeforeTheProgramHasAnswered) {
  const Descriptor raw = ConnectRaw();
  SendRaw(raw, RawHello(fabric::tcp::kWireVersion));
  ASSERT_TRUE(Await(1, Kind::kRequested));
  SendRaw(raw, RawMessage(Answer(WireOpcode::kPing, 0, 0)));
  const auto answer = ReceiveHeader(raw);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->opcode, WireOpcode::kPong);
}

// --- What a peer may answer -------------------------------------------------

// TRQ3: what completed is the program's again, and must have left.
TEST_F(TcpProtocolTest, AckOfWhatWasNeverSentCompletesNothing) {
  constexpr size_t kBytes = 700'000;  // two are more than the peer's window
  const Descriptor raw = ConnectRaw();
  const fabric::ConnectionId id = AcceptRaw(raw);
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(fabric(1)
                    .PostWrite(id, WorkId(i), Local(1, 0, kBytes),
                               {fabric::RegionKey(9), 0})
                    .ok());
  }
  ReceiveRaw(raw, kWireHeaderBytes + kBytes);
  SendRaw(raw, RawMessage(Answer(WireOpcode::kAck, 0, 2)));
  ASSERT_TRUE(AwaitCompletions(1, 2));
  EXPECT_EQ(completions_[1][0].status, fabric::CompletionStatus::kOk);
  EXPECT_NE(completions_[1][1].status, fabric::CompletionStatus::kOk);
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
  EXPECT_EQ(Rejected(), 1U);
}

TEST_F(TcpProtocolTest, ReplyOfAnotherLengthBreaksTheConnection) {
  const Descriptor raw = ConnectRaw();
  const fabric::ConnectionId id = AcceptRaw(raw);
  ASSERT_TRUE(
      fabric(1)
          .PostRead(id, WorkId(1), Local(1, 0, 64), {fabric::RegionKey(9), 0})
          .ok());
  ASSERT_TRUE(ReceiveHeader(raw));
  SendRaw(raw, RawMessage(Answer(WireOpcode::kReadReply, 8, 1)));
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
  EXPECT_EQ(Rejected(), 1U);
  EXPECT_EQ(Memory(1)[0], std::byte{0});
}

// LVT1: what was asked is answered. The silence of a retry time, which four
// looks are (LVT2), begins with the ping of the first of them.
TEST_F(TcpProtocolTest, PeerThatWasAskedForNothingIsNotGone) {
  Connect();
  ExpectWorks();
  for (int look = 0; look < 4; ++look) {
    world_.clock().Forward(world_.options().limits.retry_ns / 4);
    Poll(0);
  }
  EXPECT_TRUE(events_[0].empty());
  ExpectWorks();
}

// --- Bounds -----------------------------------------------------------------

// TRQ2.
TEST_F(TcpProtocolTest, NoMoreIsInFlightThanThePeersWindow) {
  constexpr size_t kBytes = 100'000;
  constexpr size_t kMessage = kWireHeaderBytes + kBytes;
  const Descriptor raw = ConnectRaw();
  const fabric::ConnectionId id = AcceptRaw(raw);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(fabric(1)
                    .PostWrite(id, WorkId(i), Local(1, 0, kBytes),
                               {fabric::RegionKey(9), 0})
                    .ok());
  }
  constexpr size_t kWindow = size_t{1} << 20;  // of RawHello
  EXPECT_EQ(ReceiveRaw(raw, 20 * kMessage).size(),
            kWindow / kMessage * kMessage);
}

// Behind a send that finds no receive.
TEST_F(TcpProtocolTest, NoMoreIsKeptThanTheOwnWindow) {
  constexpr uint64_t kBytes = 64'000;
  const Descriptor raw = ConnectRaw();
  AcceptRaw(raw);
  SendRaw(raw, RawMessage(Request(WireOpcode::kSend, 8, 0, 1)));
  const uint64_t window = world_.options().window_bytes;
  bool is_closed = false;
  uint64_t sequence = 2;
  for (; !is_closed && sequence * kBytes < 2 * window; ++sequence) {
    auto message = RawMessage(Request(WireOpcode::kWrite, kBytes, 0, sequence));
    for (std::span<std::byte> rest = message; !is_closed && !rest.empty();) {
      iovec piece{rest.data(), rest.size()};
      const auto result = fabric::tcp::SendSome(raw, {&piece, 1});
      is_closed = result.outcome == fabric::tcp::IoOutcome::kClosed;
      rest = rest.subspan(result.bytes);
      Poll(1);
    }
  }
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
  EXPECT_EQ(Rejected(), 1U);
  EXPECT_GE((sequence - 1) * kBytes, window);
}

TEST_F(TcpProtocolTest, ConnectionsThatHaveSaidNothingAreLimited) {
  fabric::tcp::TcpFabricOptions options;
  options.anonymous_max = 2;
  Random random(1);
  fabric::tcp::TcpFabric small(options, world_.clock(), random);
  address_ = *small.Listen("127.0.0.1:0");
  const Descriptor raws[] = {ConnectRaw(), ConnectRaw(), ConnectRaw()};
  for (int i = 0; i < 100 && small.counters().rejected == 0; ++i) {
    small.WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 1'000'000));
    small.RunTurn();
  }
  EXPECT_EQ(small.counters().rejected, 1U);
}

// TF8. One host floods the adapter; the other one, and whoever comes after, say
// hello in peace.
TEST_F(TcpProtocolTest, SilentConnectionsMakeRoom) {
  fabric::tcp::TcpFabricOptions options;
  options.anonymous_max = 4;
  std::vector<std::string> rejected;
  options.on_rejected = [&](std::string_view peer, UnauthenticatedEnd why,
                            std::string_view /*detail*/) {
    EXPECT_EQ(why, UnauthenticatedEnd::kSaidNothing);
    rejected.emplace_back(peer.substr(0, peer.find(':')));
  };
  Random random(1);
  fabric::tcp::TcpFabric small(options, world_.clock(), random);
  address_ = *small.Listen("127.0.0.1:0");
  std::vector<fabric::ConnectionEvent> events;
  const auto turn_until = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      small.WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 1'000'000));
      small.Poll({}, &events);
    }
    return done();
  };
  const auto lone =
      *fabric::tcp::StartConnect(address_, /*source=*/"127.0.0.5");
  small.WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 1'000'000));
  small.RunTurn();
  std::vector<Descriptor> flood;
  for (int i = 0; i < 20; ++i) flood.push_back(ConnectRaw());
  ASSERT_TRUE(turn_until([&] { return rejected.size() == 17; }));
  EXPECT_THAT(rejected, ::testing::Each("127.0.0.3"));
  for (const Descriptor* raw :
       std::array<const Descriptor*, 2>{&lone, &flood.back()}) {
    const auto hello = RawHello(fabric::tcp::kWireVersion);
    iovec piece{const_cast<std::byte*>(hello.data()), hello.size()};
    ASSERT_EQ(fabric::tcp::SendSome(*raw, {&piece, 1}).bytes, hello.size());
  }
  EXPECT_TRUE(turn_until([&] { return events.size() == 2; }));
}

TEST_F(TcpProtocolTest, WhatIsNoMessageIsToldByItsPeer) {
  fabric::tcp::TcpFabricOptions options;
  std::vector<UnauthenticatedEnd> rejected;
  options.on_rejected = [&](std::string_view peer, UnauthenticatedEnd why,
                            std::string_view /*detail*/) {
    EXPECT_EQ(peer.substr(0, 10), "127.0.0.3:");
    rejected.push_back(why);
  };
  Random random(1);
  fabric::tcp::TcpFabric small(options, world_.clock(), random);
  address_ = *small.Listen("127.0.0.1:0");
  const Descriptor raw = ConnectRaw();
  // Longer than a header is.
  std::string request = "GET / HTTP/1.1\r\nHost: node.example:7401\r\n\r\n" +
                        std::string(100, '.');
  iovec piece{request.data(), request.size()};
  for (int i = 0; i < 1000 && rejected.empty(); ++i) {
    if (piece.iov_len > 0)
      piece.iov_len -= fabric::tcp::SendSome(raw, {&piece, 1}).bytes;
    small.WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 1'000'000));
    small.RunTurn();
  }
  ASSERT_EQ(rejected.size(), 1U);
  EXPECT_EQ(rejected.front(), UnauthenticatedEnd::kNotUnderstood);
}

// --- System calls -----------------------------------------------------------

// TF4, TF5: one message out and one in. The acknowledgement goes with what is
// posted in return; a host that only hands over its posts asks for no more.
TEST_F(TcpProtocolTest, RoundTripTakesOneSendPerSide) {
  Connect();
  constexpr uint64_t kRounds = 20;
  const fabric::tcp::TcpFabricCounters before[2] = {fabric(0).counters(),
                                                    fabric(1).counters()};
  for (uint64_t i = 0; i < kRounds; ++i) {
    completions_[0].clear();
    completions_[1].clear();
    ASSERT_TRUE(
        fabric(0).PostReceive(at_[0], WorkId(8), Local(0, 128, 64)).ok());
    ASSERT_TRUE(fabric(1).PostReceive(at_[1], WorkId(7), {}).ok());
    ASSERT_TRUE(
        fabric(0)
            .PostWriteImmediate(at_[0], WorkId(1), Local(0, 0, 64), At(0), 5)
            .ok());
    const fabric::tcp::TcpFabricCounters posted = fabric(0).counters();
    fabric(0).Poll({}, &events_[0]);
    EXPECT_EQ(fabric(0).counters().receive_calls, posted.receive_calls);
    EXPECT_EQ(fabric(0).counters().wait_calls, posted.wait_calls);
    const auto is_here = [](const fabric::Completion& one) {
      return one.operation == fabric::Operation::kReceive ||
             one.operation == fabric::Operation::kReceiveImmediate;
    };
    while (!std::ranges::any_of(completions_[1], is_here)) Poll(1);
    ASSERT_TRUE(fabric(1).PostSend(at_[1], WorkId(9), Local(1, 256, 40)).ok());
    Poll(1);
    while (!std::ranges::any_of(completions_[0], is_here)) Poll(0);
  }
  for (int host = 0; host < 2; ++host) {
    EXPECT_EQ(fabric(host).counters().send_calls - before[host].send_calls,
              kRounds);
  }
}

// TF5. A caller that sleeps asks neither the socket nor epoll behind a
// handover.
class TcpHandoverTest : public TcpProtocolTest {
 protected:
  uint64_t Calls() {
    const fabric::tcp::TcpFabricCounters now = fabric(0).counters();
    return now.receive_calls + now.wait_calls;
  }
  void HandOver() {
    ASSERT_TRUE(
        fabric(0).PostWrite(at_[0], WorkId(1), Local(0, 0, 64), At(0)).ok());
    fabric(0).Poll({}, &events_[0]);
  }
  // The clock stands, so that no timer comes.
  void SleepAndPoll() {
    fabric(0).Wake();
    fabric(0).WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 1));
    Poll(0);
  }
};

TEST_F(TcpHandoverTest, CallerThatSleepsLooksForNothing) {
  Connect();
  SleepAndPoll();
  HandOver();
  uint64_t before = Calls();
  Poll(0);
  EXPECT_EQ(Calls(), before);
  Poll(0);
  EXPECT_GT(Calls(), before);

  SleepAndPoll();
  HandOver();
  world_.clock().Forward(20'000);
  before = Calls();
  Poll(0);
  EXPECT_GT(Calls(), before) << "it does something else meanwhile";
}

TEST_F(TcpHandoverTest, CallerThatSpinsLooksAtOnce) {
  Connect();
  SleepAndPoll();
  Poll(0);
  HandOver();
  const uint64_t before = Calls();
  Poll(0);
  EXPECT_GT(Calls(), before);
}

TEST_F(TcpHandoverTest, CallerThatAlwaysHandsOverHearsAllTheSame) {
  Connect();
  SleepAndPoll();
  constexpr int kTurns = 1000;
  int turn = 0;
  for (; turn < kTurns && completions_[0].empty(); ++turn) {
    HandOver();
    fabric(1).RunTurn();
    Poll(0);
    world_.clock().Forward(1'000);
  }
  EXPECT_LT(turn, kTurns);
}

TEST_F(TcpProtocolTest, PollWithoutRoomHearsWhenNothingWasPosted) {
  Connect();
  memory_[0][0] = 77;
  ASSERT_TRUE(
      fabric(0).PostWrite(at_[0], WorkId(1), Local(0, 0, 64), At(0)).ok());
  fabric(0).RunTurn();
  for (int i = 0; i < 1000 && memory_[1][0] == 0; ++i) {
    fabric(1).Poll({}, &events_[1]);
  }
  EXPECT_EQ(memory_[1][0], 77U);
}

}  // namespace
}  // namespace alpheus::testing
