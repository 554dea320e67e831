// SPDX-License-Identifier: Apache-2.0
// Trunks: connections that share a socket, and peers that break its frames.
#include "replication/fabric/tcp/trunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"

namespace alpheus::testing {
namespace {

using fabric::ConnectionId;
using fabric::WorkId;
using fabric::tcp::Descriptor;
using fabric::tcp::kWireHeaderBytes;
using fabric::tcp::Trunk;
using fabric::tcp::WireHeader;
using fabric::tcp::WireOpcode;
using ::testing::ElementsAreArray;
using Kind = fabric::ConnectionEvent::Kind;

class TrunkTest : public TcpFabricTest {
 protected:
  TrunkTest() : TcpFabricTest(/*shares_sockets=*/true) {}

  // Connects host 0 to host 1 once more; returns both ends.
  struct Ends {
    ConnectionId here;
    ConnectionId there;
  };
  Ends ConnectAgain() {
    Connect();
    return {at_[0], at_[1]};
  }
  static std::vector<std::byte> Frame(uint32_t lane,
                                      std::span<const std::byte> bytes) {
    std::vector<std::byte> all(8);
    const uint64_t header = uint64_t{bytes.size()} << 32 | lane;
    fabric::tcp::PutWord(header, all.data());
    all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
  }
  void SendFrame(const Descriptor& raw, uint32_t lane,
                 std::span<const std::byte> bytes) {
    SendRaw(raw, Frame(lane, bytes));
  }
  // A peer that is no adapter, whose bytes begin a trunk.
  Descriptor BeginRaw() {
    Descriptor raw = ConnectRaw();
    SendRaw(raw, Trunk::Hello(/*group=*/0));
    EXPECT_THAT(ReceiveRaw(raw, Trunk::kHelloBytes),
                ElementsAreArray(Trunk::Answer(/*adapters=*/1)));
    return raw;
  }
  // Opens a lane over it; returns host 1's end.
  ConnectionId AcceptLane(const Descriptor& raw, uint32_t lane) {
    SendFrame(raw, lane, RawHello(fabric::tcp::kWireVersion));
    const auto request = Await(1, Kind::kRequested);
    EXPECT_TRUE(request && fabric(1).Accept(request->connection, "").ok());
    EXPECT_TRUE(Await(1, Kind::kEstablished));
    ReceiveRaw(raw, Trunk::kFrameHeaderBytes + kWireHeaderBytes +
                        fabric::tcp::kWireHelloBytes);
    return request ? request->connection : ConnectionId();
  }
  std::vector<std::byte> RawWrite(uint64_t bytes, uint64_t sequence) {
    return RawMessage({.opcode = WireOpcode::kWrite,
                       .immediate = 0,
                       .length = bytes,
                       .key = key_[1].value,
                       .offset = 0,
                       .sequence = sequence});
  }
  void ExpectClosed(const Descriptor& raw) {
    ReceiveRaw(raw, 1);
    EXPECT_TRUE(is_closed_);
  }
  uint64_t Rejected() { return fabric(1).counters().rejected; }
};

// ---- What it begins with

// The format (docs/design/fabric.md#trunks).
TEST_F(TrunkTest, HelloAndAnswerAreTheseBytes) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> all;
    for (const int value : values) all.push_back(static_cast<std::byte>(value));
    return all;
  };
  EXPECT_THAT(Trunk::Hello(/*group=*/200),
              ElementsAreArray(bytes({'A', 'L', 'P', 'T', 1, 0, 0, 0,  //
                                      200, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_THAT(Trunk::Answer(/*adapters=*/256),
              ElementsAreArray(bytes({'A', 'L', 'P', 'T', 1, 0, 0, 0,  //
                                      0, 1, 0, 0, 0, 0, 0, 0})));
  EXPECT_EQ(Trunk::ReadHello(Trunk::Hello(255)), 255U);
  EXPECT_EQ(Trunk::ReadHello(Trunk::Hello(256)), std::nullopt);
  EXPECT_EQ(Trunk::ReadAnswer(Trunk::Answer(256)), 256U);
  EXPECT_EQ(Trunk::ReadAnswer(Trunk::Answer(257)), std::nullopt);
  EXPECT_EQ(Trunk::ReadAnswer(Trunk::Answer(0)), std::nullopt);
}

// ---- What is shared

TEST_F(TrunkTest, ConnectionsToOneAddressShareASocket) {
  std::vector<Ends> ends;
  for (int i = 0; i < 16; ++i) ends.push_back(ConnectAgain());
  EXPECT_EQ(fabric(0).counters().sockets, 1U);
  EXPECT_EQ(fabric(1).counters().sockets, 1U);
  for (const Ends& one : ends) {
    at_[0] = one.here;
    ExpectWorks();
  }
}

// Sixteen connections cost what one does: a call to send for each side, and two
// to receive.
TEST_F(TrunkTest, WorkOfAllLeavesInOneCall) {
  std::vector<Ends> ends;
  for (int i = 0; i < 16; ++i) ends.push_back(ConnectAgain());
  Until([] { return false; });  // what is left of the handshakes
  const auto here = fabric(0).counters();
  const auto there = fabric(1).counters();
  for (const Ends& one : ends) {
    ASSERT_TRUE(
        fabric(0).PostWrite(one.here, WorkId(1), Local(0, 0, 64), At(0)).ok());
  }
  Poll(0);
  EXPECT_EQ(fabric(0).counters().send_calls - here.send_calls, 1U);
  const size_t before = completions_[0].size();
  ASSERT_TRUE(AwaitCompletions(0, before + 16));
  EXPECT_EQ(fabric(0).counters().send_calls - here.send_calls, 1U);
  EXPECT_EQ(fabric(1).counters().send_calls - there.send_calls, 1U);
}

// ---- Ends

// TRK2, FB5.
TEST_F(TrunkTest, LaneThatIsClosedLeavesTheOthersAlone) {
  const Ends first = ConnectAgain();
  const Ends second = ConnectAgain();
  ASSERT_TRUE(fabric(1).Close(first.there).ok());
  const auto event = Await(0, Kind::kDisconnected);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->connection, first.here);
  ASSERT_TRUE(fabric(0).Close(first.here).ok());
  at_[0] = second.here;
  ExpectWorks();
  EXPECT_EQ(fabric(0).counters().sockets, 1U);
}

TEST_F(TrunkTest, SocketIsClosedAfterItsLastLane) {
  const Ends first = ConnectAgain();
  const Ends second = ConnectAgain();
  for (const Ends& one : {first, second}) {
    ASSERT_TRUE(fabric(0).Close(one.here).ok());
    ASSERT_TRUE(Await(1, Kind::kDisconnected));
    ASSERT_TRUE(fabric(1).Close(one.there).ok());
  }
  EXPECT_TRUE(Until([&] {
    return fabric(0).counters().sockets == 0 &&
           fabric(1).counters().sockets == 0;
  }));
}

// TRK6.
TEST_F(TrunkTest, ConnectionAfterSilenceGetsASocketOfItsOwn) {
  const Ends first = ConnectAgain();
  world_.Cut(0, 1);
  ASSERT_TRUE(
      fabric(0).PostWrite(first.here, WorkId(1), Local(0, 0, 64), At(0)).ok());
  ASSERT_TRUE(AwaitCompletions(0, 1));
  EXPECT_EQ(completions_[0][0].status, fabric::CompletionStatus::kPeerGone);
  world_.Heal(0, 1);
  const auto calls = fabric(0).counters().sockets;
  Connect();
  EXPECT_EQ(fabric(0).counters().sockets, calls + 1);
  completions_[0].clear();
  ExpectWorks();
}

TEST_F(TrunkTest, EndOfTheSocketIsTheEndOfAllLanes) {
  {
    const Descriptor raw = BeginRaw();
    AcceptLane(raw, 1);
    AcceptLane(raw, 2);
  }
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
  EXPECT_TRUE(Await(1, Kind::kDisconnected));
}

// ---- Peers that break the frames

// TRK1: bytes of two lanes, cut anywhere.
TEST_F(TrunkTest, FramesMayBeCutAnywhere) {
  const Descriptor raw = BeginRaw();
  const ConnectionId lanes[] = {AcceptLane(raw, 1), AcceptLane(raw, 2)};
  ASSERT_TRUE(fabric(1).PostReceive(lanes[0], WorkId(1), {}).ok());
  std::vector<std::byte> all;
  const auto first = RawWrite(64, 1);
  const auto second = RawWrite(128, 1);
  for (size_t at = 0; at < second.size(); at += 5) {
    for (const auto& [lane, bytes] :
         {std::pair{1U, std::span(first)}, std::pair{2U, std::span(second)}}) {
      if (at >= bytes.size()) continue;
      const auto part =
          bytes.subspan(at, std::min<size_t>(5, bytes.size() - at));
      const auto frame = Frame(lane, part);
      all.insert(all.end(), frame.begin(), frame.end());
    }
  }
  for (size_t at = 0; at < all.size(); at += 7) {
    SendRaw(raw,
            std::span(all).subspan(at, std::min<size_t>(7, all.size() - at)));
  }
  // An answer of each lane, in a frame of its own.
  const auto answers = ReceiveRaw(raw, 2 * (8 + kWireHeaderBytes));
  EXPECT_EQ(answers.size(), 2 * (8 + kWireHeaderBytes));
  EXPECT_EQ(Memory(1)[127], std::byte{1});
  EXPECT_EQ(Rejected(), 0U);
}

// TRK4, TF3.
TEST_F(TrunkTest, MalformedFrameEndsTheTrunkAndNothingElse) {
  Connect();
  const std::vector<std::byte> some(8, std::byte{1});
  const std::vector<std::byte> none;
  std::vector<std::byte> too_long = Frame(1, {});
  too_long[6] = std::byte{0xff};
  const std::vector<std::vector<std::byte>> malformed = {
      Frame(0, some),  // no lane
      Frame(2, some),  // not the next one
      Frame(1, none),  // the end of what never began
      too_long,
  };
  for (const auto& bytes : malformed) {
    const uint64_t before = Rejected();
    const Descriptor raw = BeginRaw();
    SendRaw(raw, bytes);
    ExpectClosed(raw);
    EXPECT_EQ(Rejected(), before + 1);
  }
  ExpectWorks();
}

TEST_F(TrunkTest, LaneThatIsMalformedLeavesTheOthersAlone) {
  const Descriptor raw = BeginRaw();
  const ConnectionId good = AcceptLane(raw, 1);
  const ConnectionId bad = AcceptLane(raw, 2);
  SendFrame(raw, 2, RawWrite(8, /*sequence=*/2));  // a gap
  const auto event = Await(1, Kind::kDisconnected);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->connection, bad);
  SendFrame(raw, 1, RawWrite(8, 1));
  // The end of lane 2, and the answer of lane 1.
  ReceiveRaw(raw, 8 + 8 + kWireHeaderBytes);
  EXPECT_FALSE(is_closed_);
  ASSERT_TRUE(fabric(1).Close(good).ok());
}

// TRK2.
TEST_F(TrunkTest, FramesOfALaneThatIsClosedAreDropped) {
  const Descriptor raw = BeginRaw();
  const ConnectionId first = AcceptLane(raw, 1);
  AcceptLane(raw, 2);
  ASSERT_TRUE(fabric(1).Close(first).ok());
  SendFrame(raw, 1, RawWrite(64, 1));
  SendFrame(raw, 2, RawWrite(8, 1));
  ReceiveRaw(raw, 8 + 8 + kWireHeaderBytes);
  EXPECT_FALSE(is_closed_);
  EXPECT_EQ(Memory(1)[8], std::byte{0});
  EXPECT_EQ(Memory(1)[7], std::byte{1});
}

// TRK3.
TEST_F(TrunkTest, LanesAreBounded) {
  const Descriptor raw = BeginRaw();
  std::vector<std::byte> all;
  const auto hello = RawHello(fabric::tcp::kWireVersion);
  for (uint32_t lane = 1; lane <= Trunk::kLanesMax; ++lane) {
    const auto frame = Frame(lane, hello);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  SendRaw(raw, all);
  EXPECT_TRUE(Until([&] {
    return std::ranges::count(events_[1], Kind::kRequested,
                              &fabric::ConnectionEvent::kind) ==
           static_cast<int64_t>(Trunk::kLanesMax);
  }));
  SendRaw(raw, Frame(Trunk::kLanesMax + 1, hello));
  ExpectClosed(raw);
}

// TF8.
TEST_F(TrunkTest, TrunkThatSaysNothingMakesRoom) {
  Connect();
  const Descriptor silent = BeginRaw();
  std::vector<Descriptor> more;
  for (uint32_t i = 0; i < world_.options().anonymous_max; ++i) {
    more.push_back(BeginRaw());
  }
  ExpectClosed(silent);
  ExpectWorks();
}

TEST_F(TrunkTest, TrunkWithoutALaneEnds) {
  const Descriptor raw = BeginRaw();
  ExpectClosed(raw);
  EXPECT_EQ(Rejected(), 1U);
}

// Lanes share what is sent: a large write leaves room for a small one.
TEST_F(TrunkTest, LargeWritesOfOneLaneLetAnotherOneThrough) {
  constexpr size_t kLarge = size_t{8} << 20;
  const Ends large = ConnectAgain();
  const Ends small = ConnectAgain();
  ASSERT_TRUE(fabric(0)
                  .PostWrite(large.here, WorkId(1), Local(0, 0, kLarge), At(0))
                  .ok());
  ASSERT_TRUE(
      fabric(0).PostWrite(small.here, WorkId(2), Local(0, 0, 64), At(0)).ok());
  ASSERT_TRUE(AwaitCompletions(0, 2));
  EXPECT_EQ(completions_[0][0].work, WorkId(2));
  EXPECT_EQ(completions_[0][1].work, WorkId(1));
}

}  // namespace
}  // namespace alpheus::testing
