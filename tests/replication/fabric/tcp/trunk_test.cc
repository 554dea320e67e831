// SPDX-License-Identifier: Apache-2.0
// Trunks: connections that share a socket, and peers that break its frames.
#include "replication/fabric/tcp/trunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"
#include "tests/support/fixtures/patience.h"

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

// TRK2, FB5. The end is said: it is no silence.
TEST_F(TrunkTest, LaneThatIsClosedLeavesTheOthersAlone) {
  const Ends first = ConnectAgain();
  const Ends second = ConnectAgain();
  const int64_t before = world_.NowNanos();
  ASSERT_TRUE(fabric(1).Close(first.there).ok());
  const auto event = Await(0, Kind::kDisconnected);
  ASSERT_TRUE(event);
  EXPECT_LT(world_.NowNanos() - before, world_.options().limits.retry_ns);
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

// TRK6. The other connection, which asks the peer later, is not given up yet.
TEST_F(TrunkTest, ConnectionAfterSilenceGetsASocketOfItsOwn) {
  const Ends first = ConnectAgain();
  ConnectAgain();
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

// The side that connects ends a socket whose connections have all ended, before
// its application closes them: the peer would end it a little later.
TEST_F(TrunkTest, SocketWhoseConnectionsAreBrokenTakesNoFurtherOne) {
  const Ends first = ConnectAgain();
  ASSERT_TRUE(fabric(1).Close(first.there).ok());
  ASSERT_TRUE(Await(0, Kind::kDisconnected));
  EXPECT_TRUE(Until([&] { return fabric(0).counters().sockets == 0; }));
  ConnectAgain();
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

// TRK6. A lane that ends before anything came by it. Another one is still
// there.
TEST_F(TrunkTest, ConnectionAfterOneThatWasEndedUnansweredGetsASocketOfItsOwn) {
  const auto peer = fabric::tcp::ListenOn("127.0.0.3:0");
  ASSERT_TRUE(peer.ok()) << peer.status();
  const auto first = fabric(0).Connect(peer->address, "", Deadline());
  ASSERT_TRUE(first.ok()) << first.status();
  Descriptor raw;
  ASSERT_TRUE(Until([&] {
    raw = fabric::tcp::AcceptOne(peer->socket).socket;
    return raw.is_open();
  }));
  const auto other = fabric(0).Connect(peer->address, "", Deadline());
  ASSERT_TRUE(other.ok()) << other.status();
  constexpr size_t kHello = Trunk::kFrameHeaderBytes + kWireHeaderBytes +
                            fabric::tcp::kWireHelloBytes;
  ReceiveRaw(raw, Trunk::kHelloBytes + 2 * kHello);
  SendRaw(raw, Frame(1, {}));
  const auto event = Await(0, Kind::kUnreachable);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->connection, *first);
  const uint64_t sockets = fabric(0).counters().sockets;
  ASSERT_TRUE(fabric(0).Connect(peer->address, "", Deadline()).ok());
  EXPECT_EQ(fabric(0).counters().sockets, sockets + 1);
}

// ---- Lanes that may not be read

class TrunkKeepsTest : public TrunkTest {
 protected:
  // Requests that wait for a receive, each of its lane: in all more than the
  // adapter and the kernel keep.
  void SetUp() override {
    TrunkTest::SetUp();
    raw_ = BeginRaw();
    const uint64_t window = world_.options().window_bytes;
    const uint64_t bytes = window - 2 * kWireHeaderBytes;
    const uint64_t count = 3 * world_.options().kept_bytes_max / window;
    for (uint32_t lane = 1; lane <= count; ++lane) {
      lanes_.push_back(AcceptLane(raw_, lane));
      const auto message = RawMessage({.opcode = WireOpcode::kSend,
                                       .immediate = 0,
                                       .length = bytes,
                                       .key = 0,
                                       .offset = 0,
                                       .sequence = 1});
      for (size_t at = 0; at < message.size(); at += Trunk::kFrameBytesMax) {
        const auto rest = std::span(message).subspan(at);
        Queue(lane,
              rest.first(std::min<size_t>(rest.size(), Trunk::kFrameBytesMax)));
      }
    }
    other_ = static_cast<uint32_t>(count + 1);
    AcceptLane(raw_, other_);
    Queue(other_, RawWrite(8, 1));
  }
  void Queue(uint32_t lane, std::span<const std::byte> bytes) {
    const auto frame = Frame(lane, bytes);
    queued_.insert(queued_.end(), frame.begin(), frame.end());
  }
  // Sends what the kernel takes, as long as it takes any.
  void SendQueued() {
    int idle = 0;
    while (idle < 100 && sent_ < queued_.size()) {
      iovec piece{queued_.data() + sent_, queued_.size() - sent_};
      const size_t taken = fabric::tcp::SendSome(raw_, {&piece, 1}).bytes;
      sent_ += taken;
      idle = taken == 0 ? idle + 1 : 0;
      Poll(1);
    }
  }
  // Sends all. The kernel may have to send again what the peer's had no room
  // for, which takes it some time; the adapter's clock stands still meanwhile.
  bool SendAll() {
    const Deadline end = InPatience();
    while (!HasWritten() && !end.HasPassed(Clock::Real().NowNanos())) {
      SendQueued();
      Poll(1);
      fabric(1).WaitForActivity(
          Deadline::AtNanos(world_.NowNanos() + 1'000'000));
    }
    return HasWritten() && sent_ == queued_.size();
  }
  uint64_t Kept() { return fabric(1).counters().kept_bytes; }
  bool HasWritten() { return Memory(1)[0] == std::byte{1}; }

  Descriptor raw_;
  std::vector<ConnectionId> lanes_;
  uint32_t other_ = 0;
  std::vector<std::byte> queued_;
  size_t sent_ = 0;
};

// TRK5, TCN2. Without it a lane would keep what comes for it behind the bound.
TEST_F(TrunkKeepsTest, NothingIsReadWhileALaneMayNotBe) {
  const uint64_t bound = world_.options().kept_bytes_max;
  SendQueued();
  EXPECT_LT(sent_, queued_.size());
  EXPECT_GE(Kept(), bound);
  EXPECT_LE(Kept(), bound + (uint64_t{1} << 20));  // a buffer more
  EXPECT_FALSE(HasWritten());
  // Bytes in the kernel wake nobody: a wait lasts as long as it is to.
  const int64_t before = Clock::Real().NowNanos();
  constexpr int kWaits = 10;
  for (int wait = 0; wait < kWaits; ++wait) {
    fabric(1).WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 2'000'000));
    Poll(1);
  }
  EXPECT_GE(Clock::Real().NowNanos() - before, kWaits * 1'000'000);
}

// TRK5. Reading goes on once the requests do.
TEST_F(TrunkKeepsTest, AllIsReadOnceTheRequestsGoOn) {
  SendQueued();
  ASSERT_LT(sent_, queued_.size());
  const auto memory = Memory(1).subspan(4096);
  for (const ConnectionId lane : lanes_) {
    ASSERT_TRUE(fabric(1)
                    .PostReceive(lane, WorkId(1),
                                 {key_[1], memory.first(size_t{4} << 20)})
                    .ok());
  }
  EXPECT_TRUE(SendAll());
  EXPECT_EQ(Kept(), 0U);
  EXPECT_EQ(Rejected(), 0U);
}

// TRK5. Nothing of the lane that is closed is kept any more.
TEST_F(TrunkKeepsTest, AllIsReadOnceTheLanesAreClosed) {
  SendQueued();
  ASSERT_LT(sent_, queued_.size());
  for (const ConnectionId lane : lanes_) {
    ASSERT_TRUE(fabric(1).Close(lane).ok());
  }
  EXPECT_TRUE(SendAll());
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

// TRK4. A trunk that must make room for its own lane is not there any more when
// the rest of its bytes is looked at.
TEST_F(TrunkTest, NothingOfATrunkThatMadeRoomForItsOwnLaneIsTaken) {
  Connect();
  const std::vector<std::byte> some(8, std::byte{1});
  for (const bool begins_with_it : {false, true}) {
    SCOPED_TRACE(begins_with_it);
    std::vector<std::byte> bytes = Frame(1, some);
    for (const auto& more : {Frame(2, some), Frame(0, some)}) {
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    Descriptor oldest;
    if (begins_with_it) {
      oldest = ConnectRaw();
      const auto hello = Trunk::Hello();
      SendRaw(oldest, std::span(hello).first(4));
      const auto rest = std::span(hello).subspan(4);
      bytes.insert(bytes.begin(), rest.begin(), rest.end());
    } else {
      oldest = BeginRaw();
    }
    std::vector<Descriptor> more;
    for (uint32_t i = 1; i < world_.options().anonymous_max; ++i) {
      more.push_back(BeginRaw());
    }
    const uint64_t before = Rejected();
    SendRaw(oldest, bytes);
    if (begins_with_it) ReceiveRaw(oldest, Trunk::kHelloBytes);  // the answer
    ExpectClosed(oldest);
    EXPECT_EQ(Rejected(), before + 1);
    more.clear();
    world_.clock().Forward(2 * world_.options().limits.retry_ns);
    ASSERT_TRUE(Until([&] { return fabric(1).counters().sockets == 1; }));
  }
  ExpectWorks();
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

// ---- A trunk alone

// A stream whose kernel takes so many bytes.
class MeasuredStream final : public fabric::tcp::Stream {
 public:
  bool is_open() const override { return is_open_; }
  void Close() override { is_open_ = false; }
  bool is_ready() const override { return true; }
  fabric::tcp::TlsSession::Progress MakeReady() override {
    return fabric::tcp::TlsSession::Progress::kDone;
  }
  std::string peer_name() const override { return ""; }
  std::string failure() const override { return ""; }
  bool has_ended() const override { return false; }
  bool FailIfRevoked(const fabric::tcp::TlsSettings& /*now*/) override {
    return false;
  }
  bool IsTrustedBy(const fabric::tcp::TlsSettings& /*now*/) const override {
    return true;
  }
  bool is_offloaded() const override { return false; }
  // Takes all that comes, as TLS does, and keeps what the kernel does not take;
  // or only a part at a time.
  fabric::tcp::IoResult Send(std::span<iovec> from) override {
    if (holds > 0) return {};
    size_t bytes = 0;
    for (const iovec& piece : from) {
      const size_t taken = std::min(piece.iov_len, part - bytes);
      const auto* const begin = static_cast<const std::byte*>(piece.iov_base);
      seen.insert(seen.end(), begin, begin + taken);
      bytes += taken;
    }
    holds = bytes;
    Flush();
    return {.outcome = fabric::tcp::IoOutcome::kSome, .bytes = bytes};
  }
  bool has_unsent() const override { return holds > 0; }
  void Flush() override {
    const size_t some = std::min(holds, takes);
    holds -= some;
    takes -= some;
    sent_ += some;
  }
  uint64_t sent_bytes() const override { return sent_; }
  void EndSending() override {}
  fabric::tcp::IoResult Receive(std::span<std::byte> /*into*/) override {
    return {};
  }
  bool has_unread() const override { return false; }
  bool HasDrained(size_t /*received*/, size_t /*room*/) const override {
    return true;
  }
  void Watch(bool in, bool /*out*/) override { watches_in = in; }
  void LeaveAdapter() override {}
  void JoinAdapter(fabric::tcp::Poller& /*poller*/, uint64_t /*tag*/,
                   fabric::tcp::TcpFabricCounters& /*counters*/) override {}

  size_t takes = 0;  // the kernel
  size_t holds = 0;
  size_t part = std::numeric_limits<size_t>::max();
  std::vector<std::byte> seen;
  bool watches_in = true;

 private:
  bool is_open_ = true;
  uint64_t sent_ = 0;
};

class TrunkAloneTest : public ::testing::Test {
 protected:
  static std::vector<std::byte> Frame(uint32_t lane, uint32_t bytes) {
    std::vector<std::byte> all(8 + bytes);
    fabric::tcp::PutWord(uint64_t{bytes} << 32 | lane, all.data());
    return all;
  }
  std::shared_ptr<Trunk> Make(fabric::tcp::TlsSession::Side side) {
    auto stream = std::make_unique<MeasuredStream>();
    stream_ = stream.get();
    return std::make_shared<Trunk>(std::move(stream), side, "peer",
                                   /*group=*/0);
  }
  static size_t Send(fabric::tcp::Stream& lane, size_t bytes) {
    std::vector<std::byte> some(bytes);
    iovec piece{some.data(), some.size()};
    return lane.Send({&piece, 1}).bytes;
  }

  MeasuredStream* stream_ = nullptr;
};

// TRK4.
TEST_F(TrunkAloneTest, NothingIsTakenAfterTheEnd) {
  const auto trunk = Make(fabric::tcp::TlsSession::Side::kAccepts);
  const auto hello = Trunk::Hello();
  std::vector<std::byte> bytes(hello.begin(), hello.end());
  for (const auto& more : {Frame(1, 8), Frame(2, 8)}) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  int arrivals = 0;
  EXPECT_TRUE(trunk->Take(bytes, [&](const Trunk::Arrival& /*arrival*/) {
    ++arrivals;
    trunk->End();
  }));
  EXPECT_EQ(arrivals, 1);
}

// TRK3. A peer opens lanes and ends them, and takes nothing.
TEST_F(TrunkAloneTest, NothingIsReadWhileEndsOfLanesTakeTheRoom) {
  const auto trunk = Make(fabric::tcp::TlsSession::Side::kAccepts);
  ASSERT_TRUE(trunk->Take(Trunk::Hello(), [](const Trunk::Arrival&) {}));
  constexpr uint32_t kLanes = 4 * Trunk::kUnsentBytesMax / 8;
  uint32_t lane = 0;
  while (lane < kLanes && trunk->MayBeRead()) {
    ++lane;
    const auto accept_and_close = [&](const Trunk::Arrival& arrival) {
      if (arrival.connection != ConnectionId()) return;
      trunk->AcceptLane(arrival.number, ConnectionId(arrival.number));
    };
    ASSERT_TRUE(trunk->Take(Frame(lane, 1), accept_and_close));
  }
  EXPECT_LT(lane, kLanes);
  trunk->Watch();
  EXPECT_FALSE(stream_->watches_in);
  stream_->takes = size_t{8} * lane;
  EXPECT_TRUE(trunk->Flush());
  EXPECT_TRUE(trunk->MayBeRead());
}

// TRK3. Lanes that send by turns, while the kernel takes a little now and then.
TEST_F(TrunkAloneTest, SendersAreNamedOnce) {
  const auto trunk = Make(fabric::tcp::TlsSession::Side::kConnects);
  const auto one = trunk->OpenLane(ConnectionId(1), 0);
  auto other = trunk->OpenLane(ConnectionId(2), 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Send(*one, 64), 64U);
    EXPECT_EQ(Send(*other, 64), 64U);
    stream_->takes = 10;
    EXPECT_TRUE(trunk->Flush());
    EXPECT_THAT(trunk->TakeSenders(),
                ::testing::ElementsAre(ConnectionId(1), ConnectionId(2)));
  }
  other.reset();
  EXPECT_THAT(trunk->TakeSenders(), ::testing::ElementsAre(ConnectionId(1)));
  stream_->takes = size_t{1} << 20;
  EXPECT_TRUE(trunk->Flush());
  EXPECT_THAT(trunk->TakeSenders(), ::testing::ElementsAre(ConnectionId(1)));
  EXPECT_THAT(trunk->TakeSenders(), ::testing::IsEmpty());
}

// LVT3: bytes of others that wait say nothing about a lane that sends none.
TEST_F(TrunkAloneTest, LaneThatSentNothingHasNothingUnsent) {
  const auto trunk = Make(fabric::tcp::TlsSession::Side::kConnects);
  const auto one = trunk->OpenLane(ConnectionId(1), 0);
  const auto other = trunk->OpenLane(ConnectionId(2), 0);
  EXPECT_EQ(Send(*one, 64), 64U);
  EXPECT_FALSE(trunk->Flush());  // TLS has it, the kernel has not
  EXPECT_TRUE(one->has_unsent());
  EXPECT_FALSE(other->has_unsent());
  stream_->takes = 1000;
  EXPECT_TRUE(trunk->Flush());
  EXPECT_FALSE(one->has_unsent());
}

// TRK3. Whoever has much to send goes behind those that wait.
TEST_F(TrunkAloneTest, ThoseThatWaitLongestComeFirst) {
  const auto trunk = Make(fabric::tcp::TlsSession::Side::kConnects);
  const std::unique_ptr<fabric::tcp::Stream> lanes[] = {
      trunk->OpenLane(ConnectionId(1), 0), trunk->OpenLane(ConnectionId(2), 0),
      trunk->OpenLane(ConnectionId(3), 0)};
  constexpr size_t kLong = 100'000;
  EXPECT_EQ(Send(*lanes[2], 64), 64U);
  EXPECT_FALSE(trunk->Flush());  // the kernel takes nothing
  EXPECT_EQ(Send(*lanes[0], kLong), 0U);
  EXPECT_EQ(Send(*lanes[1], kLong), 0U);
  EXPECT_EQ(Send(*lanes[2], 64), 64U);  // a short one has room
  stream_->takes = size_t{10} << 20;
  EXPECT_TRUE(trunk->Flush());
  const auto send_twice = [&](uint64_t expected) {
    return trunk->LetNextSend([&](ConnectionId next) {
      EXPECT_EQ(next, ConnectionId(expected));
      auto& lane = *lanes[next.value - 1];
      EXPECT_EQ(Send(lane, kLong), kLong);
      EXPECT_EQ(Send(lane, kLong), kLong);
      return true;
    });
  };
  EXPECT_TRUE(send_twice(1));
  EXPECT_EQ(Send(*lanes[0], kLong), 0U);  // another one waits
  EXPECT_TRUE(send_twice(2));
  EXPECT_TRUE(send_twice(1));
  EXPECT_EQ(trunk->waiting(), 0U);
  EXPECT_EQ(Send(*lanes[1], kLong), kLong);
}

// TRK1.
TEST_F(TrunkAloneTest, LongMessagesArriveWholeHoweverTheSocketTakesThem) {
  constexpr size_t kLong = 300'000;
  for (const size_t part : {1, 7, 8, 9, 80, 1'000, 65'536, 65'544, 65'545,
                            65'624, 131'088, 200'000, 1'000'000}) {
    SCOPED_TRACE(part);
    const auto trunk = Make(fabric::tcp::TlsSession::Side::kConnects);
    stream_->part = part;
    stream_->takes = std::numeric_limits<size_t>::max();
    const auto one = trunk->OpenLane(ConnectionId(1), 0);
    const auto other = trunk->OpenLane(ConnectionId(2), 0);
    EXPECT_EQ(Send(*other, 64), 64U);
    std::vector<std::byte> bytes(kLong);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i * 31 >> 4);
    }
    for (size_t sent = 0; sent < bytes.size();) {
      // Two pieces, as of a header and a payload.
      const auto rest = std::span(bytes).subspan(sent);
      const auto first = rest.first(std::min<size_t>(rest.size(), 48));
      iovec pieces[] = {
          {first.data(), first.size()},
          {rest.data() + first.size(), rest.size() - first.size()}};
      sent += one->Send(pieces).bytes;
      trunk->Flush();
      trunk->LetNextSend([](ConnectionId) { return true; });
    }
    EXPECT_EQ(Send(*other, 64), 64U);
    trunk->Flush();
    EXPECT_FALSE(one->has_unsent());
    const std::vector<std::byte> seen = stream_->seen;
    const auto there = Make(fabric::tcp::TlsSession::Side::kAccepts);
    std::map<uint32_t, std::vector<std::byte>> arrived;
    std::vector<std::unique_ptr<fabric::tcp::Stream>> lanes;
    const auto take = [&](const Trunk::Arrival& arrival) {
      if (arrival.connection == ConnectionId()) {
        lanes.push_back(
            there->AcceptLane(arrival.number, ConnectionId(arrival.number)));
      }
      auto& all = arrived[arrival.number];
      all.insert(all.end(), arrival.bytes.begin(), arrival.bytes.end());
    };
    ASSERT_TRUE(there->Take(seen, take));
    EXPECT_EQ(arrived[1].size(), 128U);
    EXPECT_EQ(arrived[2], bytes);
  }
}

}  // namespace
}  // namespace alpheus::testing
