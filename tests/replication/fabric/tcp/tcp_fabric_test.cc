// SPDX-License-Identifier: Apache-2.0
// Cases that only the software adapter over TCP can get wrong; the promises of
// every fabric are in conformance*.cc.
#include "replication/fabric/tcp/tcp_fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"

namespace alpheus::testing {

using fabric::WorkId;
using fabric::tcp::TcpFabricCounters;

namespace {

using Kind = fabric::ConnectionEvent::Kind;

// TF3.
TEST_F(TcpFabricTest, GarbageIsRefusedAndDisturbsNobody) {
  Connect();
  const fabric::tcp::Descriptor raw = ConnectRaw();
  SendRaw(
      raw,
      AsBytes(
          "GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: anything at all\r\n"));
  ReceiveRaw(raw, 1);
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(fabric(1).counters().rejected, 1U);
  EXPECT_TRUE(events_[1].empty());
  ExpectWorks();
}

TEST_F(TcpFabricTest, AnotherVersionIsRefusedAndDisturbsNobody) {
  Connect();
  const fabric::tcp::Descriptor raw = ConnectRaw();
  SendRaw(raw, RawHello(fabric::tcp::kWireVersion + 1));
  ReceiveRaw(raw, 1);
  EXPECT_TRUE(is_closed_);
  EXPECT_TRUE(events_[1].empty());
  ExpectWorks();
}

TEST_F(TcpFabricTest, WhoeverSaysNothingIsDroppedInTime) {
  const fabric::tcp::Descriptor raw = ConnectRaw();
  ReceiveRaw(raw, 1);
  EXPECT_TRUE(is_closed_);
  EXPECT_TRUE(events_[1].empty());
}

// A header, and words of the payload, come in pieces of one byte each.
TEST_F(TcpFabricTest, WriteThatComesByteByByteLandsWordByWord) {
  const fabric::tcp::Descriptor raw = ConnectRaw();
  for (const std::byte b : RawHello(fabric::tcp::kWireVersion))
    SendRaw(raw, {&b, 1});
  const auto request = Await(1, Kind::kRequested);
  ASSERT_TRUE(request);
  ASSERT_TRUE(fabric(1).Accept(request->connection, "").ok());
  ReceiveRaw(raw, fabric::tcp::kWireHeaderBytes + fabric::tcp::kWireHelloBytes);

  for (const std::byte b :
       fabric::tcp::EncodeHeader({.opcode = fabric::tcp::WireOpcode::kWrite,
                                  .immediate = 0,
                                  .length = 20,
                                  .key = key_[1].value,
                                  .offset = 4,
                                  .sequence = 1})) {
    SendRaw(raw, {&b, 1});
  }
  const std::string payload = "abcdefghijklmnopqrst";
  for (size_t sent = 1; sent <= payload.size(); ++sent) {
    SendRaw(raw, AsBytes(payload).subspan(sent - 1, 1));
    while (fabric(1).RunTurn()) continue;
    // Offset 4: the first word ends behind 4 bytes.
    const size_t landed = sent < 4     ? 0
                          : sent == 20 ? 20
                                       : 4 + (sent - 4) / 8 * 8;
    EXPECT_EQ(AsText(Memory(1).subspan(4, landed)),
              std::string_view(payload).substr(0, landed));
    EXPECT_EQ(Memory(1)[4 + landed], std::byte{0}) << sent;
  }
}

TEST_F(TcpFabricTest, LargeWriteAndReadBringEveryByte) {
  constexpr size_t kLarge = size_t{8} << 20;
  for (uint64_t i = 0; i < kLarge / 8; ++i)
    memory_[0][i] = i * 0x9e3779b97f4a7c15;
  Connect();
  ASSERT_TRUE(fabric(0)
                  .PostWrite(at_[0], WorkId(1), Local(0, 0, kLarge - 3), At(1))
                  .ok());
  ASSERT_TRUE(AwaitCompletions(0, 1));
  EXPECT_EQ(std::memcmp(&Memory(1)[1], &Memory(0)[0], kLarge - 3), 0);
  EXPECT_EQ(Memory(1)[0], std::byte{0});
  EXPECT_EQ(Memory(1)[kLarge - 2], std::byte{0});

  std::ranges::fill(memory_[0], 0);
  ASSERT_TRUE(fabric(0)
                  .PostRead(at_[0], WorkId(2), Local(0, 0, kLarge - 3), At(1))
                  .ok());
  ASSERT_TRUE(AwaitCompletions(0, 2));
  EXPECT_EQ(completions_[0][1].status, fabric::CompletionStatus::kOk);
  EXPECT_EQ(std::memcmp(&Memory(1)[1], &Memory(0)[0], kLarge - 3), 0);
}

TEST_F(TcpFabricTest, ManySmallWritesTakeOneSystemCallPerSide) {
  Connect();
  constexpr uint64_t kWrites = 50;
  const TcpFabricCounters before[2] = {fabric(0).counters(),
                                       fabric(1).counters()};
  for (uint64_t i = 0; i < kWrites; ++i) {
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(at_[0], WorkId(i), Local(0, 64 * i, 64), At(64 * i))
            .ok());
  }
  Poll(0);
  EXPECT_EQ(fabric(0).counters().send_calls - before[0].send_calls, 1U);
  ASSERT_TRUE(AwaitCompletions(0, kWrites));
  for (uint64_t i = 0; i < kWrites; ++i) {
    EXPECT_EQ(completions_[0][i].work, WorkId(i));
  }
  EXPECT_EQ(fabric(0).counters().send_calls - before[0].send_calls, 1U);
  // One acknowledgement for all.
  EXPECT_EQ(fabric(1).counters().send_calls - before[1].send_calls, 1U);
}

// TF4. Polls until host 1, and host 1 alone, has taken one write with
// immediate; returns its counters from before.
class TcpFabricDelayTest : public TcpFabricTest {
 protected:
  TcpFabricCounters TakeOneImmediate() {
    EXPECT_TRUE(fabric(1).PostReceive(at_[1], WorkId(7), {}).ok());
    EXPECT_TRUE(
        fabric(0)
            .PostWriteImmediate(at_[0], WorkId(1), Local(0, 0, 64), At(0), 5)
            .ok());
    const TcpFabricCounters before = fabric(1).counters();
    fabric(0).RunTurn();
    while (completions_[1].empty()) Poll(1);
    EXPECT_EQ(completions_[1][0].operation,
              fabric::Operation::kReceiveImmediate);
    return before;
  }
  uint64_t SendsSince(const TcpFabricCounters& before) {
    return fabric(1).counters().send_calls - before.send_calls;
  }
};

TEST_F(TcpFabricDelayTest, AcknowledgementLeavesWithWhatIsPostedInReturn) {
  Connect();
  ASSERT_TRUE(fabric(0).PostReceive(at_[0], WorkId(8), Local(0, 128, 64)).ok());
  const TcpFabricCounters before = TakeOneImmediate();
  Poll(1);
  EXPECT_EQ(SendsSince(before), 0U);
  ASSERT_TRUE(fabric(1).PostSend(at_[1], WorkId(9), Local(1, 256, 40)).ok());
  Poll(1);
  EXPECT_EQ(SendsSince(before), 1U);
  while (completions_[0].size() < 2) Poll(0);
  EXPECT_EQ(completions_[0][0].work, WorkId(1));
  EXPECT_EQ(completions_[0][1].work, WorkId(8));
}

TEST_F(TcpFabricDelayTest, AcknowledgementLeavesAloneWhenNothingIsPosted) {
  Connect();
  const TcpFabricCounters before = TakeOneImmediate();
  world_.clock().Forward(19'999);
  Poll(1);
  EXPECT_EQ(SendsSince(before), 0U);
  world_.clock().Forward(1);
  Poll(1);
  EXPECT_EQ(SendsSince(before), 1U);
}

TEST_F(TcpFabricDelayTest, AcknowledgementLeavesThoughMoreAndMoreComes) {
  Connect();
  const TcpFabricCounters before = TakeOneImmediate();
  world_.clock().Forward(20'000);
  completions_[1].clear();
  TakeOneImmediate();
  EXPECT_EQ(SendsSince(before), 1U);  // of the first; the second is held
}

TEST_F(TcpFabricDelayTest, ProgressOfAStandInDelaysNothing) {
  Connect();
  const TcpFabricCounters before = TakeOneImmediate();
  fabric(1).RunTurn();
  EXPECT_EQ(SendsSince(before), 1U);
}

TEST_F(TcpFabricDelayTest, NobodyFallsAsleepOverAnAcknowledgement) {
  Connect();
  const TcpFabricCounters before = TakeOneImmediate();
  fabric(1).WaitForActivity(Deadline::AtNanos(world_.NowNanos()));
  EXPECT_EQ(SendsSince(before), 1U);
}

TEST_F(TcpFabricDelayTest, CloseSaysWhatWasDelayed) {
  Connect();
  const TcpFabricCounters before = TakeOneImmediate();
  ASSERT_TRUE(fabric(1).Close(at_[1]).ok());
  EXPECT_EQ(SendsSince(before), 1U);
  ASSERT_TRUE(AwaitCompletions(0, 1));
  EXPECT_EQ(completions_[0][0].status, fabric::CompletionStatus::kOk);
}

TEST_F(TcpFabricTest, LoneConnectionIsHeardWithoutEpoll) {
  Connect();
  Until([] { return false; });  // all is quiet
  const TcpFabricCounters before = fabric(0).counters();
  constexpr uint64_t kPolls = 640;
  for (uint64_t i = 0; i < kPolls; ++i) Poll(0);
  const TcpFabricCounters after = fabric(0).counters();
  // One in 64, and the one after a wait.
  EXPECT_LE(after.wait_calls - before.wait_calls, kPolls / 64 + 1);
  EXPECT_LE(after.receive_calls - before.receive_calls, kPolls);
}

TEST_F(TcpFabricTest, IdleAdapterWaitsInOneSystemCall) {
  Connect();
  Until([] { return false; });  // all is quiet
  const TcpFabricCounters before = fabric(1).counters();
  // The clock stands, so that no timer comes; 30 ms pass in the kernel.
  fabric(1).WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 30'000'000));
  const TcpFabricCounters after = fabric(1).counters();
  EXPECT_EQ(after.wait_calls - before.wait_calls, 1U);
  EXPECT_EQ(after.send_calls, before.send_calls);
  EXPECT_EQ(after.receive_calls, before.receive_calls);
}

// A turn answers the requests that it has taken before it takes more.
TEST_F(TcpFabricTest, TurnReceivesFromAFewConnections) {
  constexpr uint64_t kConnections = 12;
  constexpr uint64_t kReadyMax = 8;
  std::vector<fabric::ConnectionId> all;
  for (uint64_t i = 0; i < kConnections; ++i) {
    Connect();
    all.push_back(at_[0]);
  }
  uint64_t most = 0;
  for (int round = 0; round < 20; ++round) {
    completions_[0].clear();
    for (const fabric::ConnectionId id : all) {
      ASSERT_TRUE(
          fabric(0).PostWrite(id, WorkId(1), Local(0, 0, 64), At(0)).ok());
    }
    for (int turn = 0; completions_[0].size() < kConnections; ++turn) {
      ASSERT_LT(turn, 1'000'000);
      Poll(0);
      const TcpFabricCounters before = fabric(1).counters();
      fabric(1).RunTurn();
      const TcpFabricCounters after = fabric(1).counters();
      const uint64_t received = after.receive_calls - before.receive_calls;
      EXPECT_LE(received, kReadyMax);
      EXPECT_LE(after.send_calls - before.send_calls, received);
      most = std::max(most, received);
    }
  }
  EXPECT_EQ(most, kReadyMax) << "never were so many ready";
}

TEST_F(TcpFabricTest, WakeEndsAWait) {
  fabric(0).Wake();
  fabric(0).WaitForActivity(Deadline());  // woken before
  std::thread waker([&] { fabric(0).Wake(); });
  fabric(0).WaitForActivity(Deadline());
  waker.join();
}

// A stand-in that brings completions wakes whoever waits for them (TF2).
TEST_F(TcpFabricTest, StandInsProgressWakesAWaitingThread) {
  Connect();
  std::atomic<bool> stop{false};
  std::thread stand_in([&] {
    while (!stop) {
      fabric(0).RunTurn();
      fabric(1).RunTurn();
    }
  });
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(
        fabric(0).PostWrite(at_[0], WorkId(i), Local(0, 0, 64), At(0)).ok());
    std::array<fabric::Completion, 1> one;
    while (fabric(0).Poll(one, &events_[0]) == 0) {
      fabric(0).WaitForActivity(Deadline());
    }
    EXPECT_EQ(one[0].work, WorkId(i));
  }
  stop = true;
  stand_in.join();
}

// TRQ2: a parked send keeps what is behind it, and answers still get through.
TEST_F(TcpFabricTest, ParkedRequestsHoldUpNeitherAnswersNorOrder) {
  Connect();
  memory_[0][0] = 77;
  ASSERT_TRUE(fabric(0).PostSend(at_[0], WorkId(1), Local(0, 0, 20)).ok());
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(fabric(0)
                    .PostWrite(at_[0], WorkId(2 + i), Local(0, 0, 5000),
                               At(8192 + 5001 * i))
                    .ok());
  }
  ASSERT_TRUE(fabric(1)
                  .PostRead(at_[1], WorkId(9), Local(1, 1024, 8), {key_[0], 0})
                  .ok());
  ASSERT_TRUE(AwaitCompletions(1, 1));
  EXPECT_EQ(memory_[1][128], 77U);
  EXPECT_TRUE(completions_[0].empty());
  EXPECT_EQ(Memory(1)[8192], std::byte{0});  // behind the send: not executed
  ASSERT_TRUE(
      fabric(1).PostReceive(at_[1], WorkId(10), Local(1, 2048, 64)).ok());
  ASSERT_TRUE(AwaitCompletions(0, 41));
  EXPECT_EQ(completions_[0][0].operation, fabric::Operation::kSend);
  EXPECT_EQ(completions_[0][40].status, fabric::CompletionStatus::kOk);
  EXPECT_EQ(completions_[1][1].bytes, 20U);
  EXPECT_EQ(memory_[1][256], 77U);
  EXPECT_EQ(std::memcmp(&Memory(1)[8192 + 5001 * 39], &Memory(0)[0], 5000), 0);
}

// LVT1: long silence while nobody polled is no silence of the peer.
TEST_F(TcpFabricTest, PeerIsNotGoneBecauseNobodyPolled) {
  Connect();
  for (int i = 0; i < 3; ++i) {
    world_.clock().Forward(10 * world_.options().limits.retry_ns);
    ExpectWorks();
  }
  EXPECT_TRUE(events_[0].empty());
  EXPECT_TRUE(events_[1].empty());
}

TEST_F(TcpFabricTest, IdleConnectionNoticesAPeerThatFellSilent) {
  Connect();
  world_.Cut(0, 1);
  EXPECT_TRUE(Await(0, Kind::kDisconnected));
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
}

}  // namespace
}  // namespace alpheus::testing
