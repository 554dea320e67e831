// SPDX-License-Identifier: Apache-2.0
// Adapters that share an address: each connection comes to the adapter of its
// group, with all that its peer has said.
#include "replication/fabric/tcp/socket_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/trunk.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"
#include "tests/replication/fabric/tcp/tcp_world.h"
#include "tests/replication/fabric/tcp/test_tls.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {
namespace {

using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::WorkId;
using fabric::tcp::AdapterOf;
using fabric::tcp::Descriptor;
using fabric::tcp::IoResult;
using fabric::tcp::kGroups;
using fabric::tcp::kWireHeaderBytes;
using fabric::tcp::Poller;
using fabric::tcp::SocketExchange;
using fabric::tcp::Stream;
using fabric::tcp::TcpFabric;
using fabric::tcp::TcpFabricOptions;
using fabric::tcp::TlsSession;
using fabric::tcp::TlsSettings;
using fabric::tcp::TlsTexts;
using fabric::tcp::Trunk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = ConnectionEvent::Kind;

// The private data of these tests is a group; anything else names none.
std::optional<uint32_t> GroupIn(std::string_view private_data) {
  const std::string text(private_data);
  uint32_t group = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, group);
  const bool is_good = error == std::errc() && read == end && group < kGroups;
  return is_good ? std::optional(group) : std::nullopt;
}

// One adapter that connects, and several at one address.
class SharedAddressTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 4096;
  using Settings = std::shared_ptr<const TlsSettings>;

  struct Adapter {
    std::unique_ptr<TcpFabric> fabric;
    Settings tls;
    std::vector<uint64_t> memory = std::vector<uint64_t>(kBytes / 8);
    fabric::RegionKey key;
    std::vector<ConnectionEvent> events;
    std::vector<fabric::Completion> completions;
    std::vector<std::string> rejected;

    std::span<std::byte> bytes() {
      return std::as_writable_bytes(std::span(memory));
    }
  };

  void Open(Adapter& adapter, TcpFabricOptions options) {
    options.limits.retry_ns = kRetryNanos;
    options.group_of = GroupIn;
    options.on_rejected = [&adapter](std::string_view /*peer*/,
                                     fabric::UnauthenticatedEnd /*why*/,
                                     std::string_view detail) {
      adapter.rejected.emplace_back(detail);
    };
    if (adapter.tls != nullptr) {
      options.tls = [&adapter] { return adapter.tls; };
    }
    adapter.fabric = std::make_unique<TcpFabric>(options, clock_, random_);
    adapter.key =
        *adapter.fabric->Register(adapter.bytes(), fabric::RemoteAccess::kAll);
  }
  void Start(uint32_t adapters, bool shares_sockets, Settings here = nullptr,
             Settings there = nullptr) {
    TcpFabricOptions options;
    options.shares_sockets = shares_sockets;
    options.source_host = "127.0.0.1";
    here_.tls = std::move(here);
    Open(here_, options);
    exchange_ = std::make_shared<SocketExchange>(adapters);
    for (uint32_t number = 0; number < adapters; ++number) {
      there_.push_back(std::make_unique<Adapter>());
      there_.back()->tls = there;
      TcpFabricOptions own;
      own.exchange = exchange_;
      own.adapter = number;
      Open(*there_.back(), own);
    }
    address_ = *there_.front()->fabric->Listen("127.0.0.2:0");
  }

  bool Poll(Adapter& adapter) {
    if (adapter.fabric == nullptr) return false;
    std::array<fabric::Completion, 64> some;
    const size_t events = adapter.events.size();
    const bool moved = adapter.fabric->RunTurn();
    const size_t count = adapter.fabric->Poll(some, &adapter.events);
    adapter.completions.insert(adapter.completions.end(), some.begin(),
                               some.begin() + static_cast<int64_t>(count));
    return moved || count > 0 || adapter.events.size() > events;
  }
  // Time goes on only where nothing moves (tcp_world.h).
  void Turn() {
    bool moved = Poll(here_);
    for (size_t i = 0; i < there_.size(); ++i) {
      if (i != stands_still_) moved |= Poll(*there_[i]);
    }
    if (moved) return;
    here_.fabric->WaitForActivity(
        Deadline::AtNanos(clock_.NowNanos() + 1'000'000));
    clock_.Forward(10'000'000);
  }
  template <class Done>
  bool Until(const Done& done) {
    const Deadline end = InPatience();
    while (!has_given_up_ && !done()) {
      has_given_up_ = end.HasPassed(Clock::Real().NowNanos());
      EXPECT_FALSE(has_given_up_) << "what was waited for did not come";
      Turn();
    }
    return !has_given_up_;
  }
  ConnectionEvent Await(Adapter& adapter, Kind kind) {
    const auto find = [&] {
      return std::ranges::find(adapter.events, kind, &ConnectionEvent::kind);
    };
    if (!Until([&] { return find() != adapter.events.end(); })) return {};
    const ConnectionEvent event = *find();
    adapter.events.erase(find());
    return event;
  }
  ConnectionId BeginConnect(uint32_t group) {
    return *here_.fabric->Connect(address_, absl::StrCat(group), Deadline());
  }
  Adapter& ThereOf(uint32_t group) {
    return *there_[AdapterOf(group, exchange_->adapters())];
  }
  // The adapter of the group gets the request, and accepts it.
  ConnectionId Accept(uint32_t group) {
    Adapter& adapter = ThereOf(group);
    const auto is_it = [&](const ConnectionEvent& event) {
      return event.kind == Kind::kRequested &&
             event.private_data == absl::StrCat(group);
    };
    const auto find = [&] {
      return std::ranges::find_if(adapter.events, is_it);
    };
    if (!Until([&] { return find() != adapter.events.end(); })) return {};
    const ConnectionId id = find()->connection;
    peer_name_ = find()->peer_name;
    EXPECT_TRUE(adapter.fabric->Accept(id, "").ok());
    return id;
  }
  void ExpectWorks(ConnectionId id, uint32_t group) {
    const size_t before = here_.completions.size();
    here_.bytes()[8] = std::byte{17};
    ASSERT_TRUE(here_.fabric
                    ->PostWrite(id, WorkId(1),
                                {here_.key, here_.bytes().subspan(8, 8)},
                                {ThereOf(group).key, 8})
                    .ok());
    ASSERT_TRUE(Until([&] { return here_.completions.size() > before; }));
    EXPECT_EQ(here_.completions.back().status, fabric::CompletionStatus::kOk);
    EXPECT_EQ(ThereOf(group).bytes()[8], std::byte{17});
    ThereOf(group).bytes()[8] = std::byte{0};
  }
  ConnectionId ConnectAndWork(uint32_t group) {
    const ConnectionId id = BeginConnect(group);
    Accept(group);
    const ConnectionEvent established = Await(here_, Kind::kEstablished);
    EXPECT_EQ(established.connection, id);
    ExpectWorks(id, group);
    return id;
  }
  uint64_t Sockets(size_t number) {
    return there_[number]->fabric->counters().sockets;
  }

  // A peer that is no adapter.
  void Send(const Descriptor& socket, std::span<const std::byte> bytes) {
    Until([&] {
      iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const IoResult result = fabric::tcp::SendSome(socket, {&piece, 1});
      bytes = bytes.subspan(result.bytes);
      return bytes.empty();
    });
  }
  bool IsClosed(const Descriptor& socket) {
    std::array<std::byte, 4096> some;
    for (;;) {
      const IoResult got = fabric::tcp::ReceiveSome(socket, some);
      if (got.outcome == fabric::tcp::IoOutcome::kClosed) return true;
      if (got.outcome == fabric::tcp::IoOutcome::kNothing) return false;
    }
  }
  static std::vector<std::byte> Request(std::string_view private_data) {
    const auto header = fabric::tcp::EncodeHeader(
        {.opcode = fabric::tcp::WireOpcode::kHello,
         .immediate = fabric::tcp::kWireVersion,
         .length = fabric::tcp::kWireHelloBytes + private_data.size(),
         .key = 0,
         .offset = 0,
         .sequence = 0});
    const auto hello = fabric::tcp::EncodeHello({.sends_max = 1,
                                                 .receives_max = 1,
                                                 .message_bytes_max = 1 << 20,
                                                 .window_bytes = 1 << 20});
    std::vector<std::byte> all(header.begin(), header.end());
    all.insert(all.end(), hello.begin(), hello.end());
    for (const char c : private_data) all.push_back(static_cast<std::byte>(c));
    return all;
  }
  static std::vector<std::byte> Ping() {
    const auto header =
        fabric::tcp::EncodeHeader({.opcode = fabric::tcp::WireOpcode::kPing,
                                   .immediate = 0,
                                   .length = 0,
                                   .key = 0,
                                   .offset = 0,
                                   .sequence = 0});
    return {header.begin(), header.end()};
  }
  static std::vector<std::byte> Frame(uint32_t lane,
                                      const std::vector<std::byte>& bytes) {
    std::vector<std::byte> all(Trunk::kFrameHeaderBytes);
    fabric::tcp::PutWord(uint64_t{bytes.size()} << 32 | lane, all.data());
    all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
  }
  static std::vector<std::byte> Joined(
      std::initializer_list<std::vector<std::byte>> parts) {
    std::vector<std::byte> all;
    for (const auto& part : parts)
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  static std::vector<std::byte> TrunkHello(uint32_t group) {
    const auto hello = Trunk::Hello(group);
    return {hello.begin(), hello.end()};
  }
  Descriptor ConnectRaw() {
    return *fabric::tcp::StartConnect(address_, "127.0.0.3");
  }
  std::vector<std::string> Requested(size_t number) {
    std::vector<std::string> all;
    for (const ConnectionEvent& event : there_[number]->events) {
      if (event.kind == Kind::kRequested) all.push_back(event.private_data);
    }
    return all;
  }

  static constexpr int64_t kRetryNanos = 400'000'000;
  HandClock clock_;
  Random random_{/*seed=*/7};
  Adapter here_;
  std::shared_ptr<SocketExchange> exchange_;
  std::vector<std::unique_ptr<Adapter>> there_;
  size_t stands_still_ = ~size_t{0};  // number of the one that is not polled
  std::string address_;
  std::string peer_name_;
  bool has_given_up_ = false;
};

// ---- Which adapter

// TF12, XCH1: more groups than adapters.
TEST_F(SharedAddressTest, SocketGoesToTheAdapterOfItsGroup) {
  Start(/*adapters=*/3, /*shares_sockets=*/false);
  for (uint32_t group = 0; group < 9; ++group) ConnectAndWork(group);
  for (size_t number = 0; number < 3; ++number) {
    EXPECT_EQ(Sockets(number), 3U);
    EXPECT_EQ(there_[number]->fabric->counters().brought, number == 0 ? 0 : 3);
  }
}

TEST_F(SharedAddressTest, TrunkGoesToTheAdapterOfItsGroup) {
  Start(/*adapters=*/3, /*shares_sockets=*/true);
  for (uint32_t group = 8; group > 0; --group) ConnectAndWork(group);
  // One for each adapter, whoever came first.
  EXPECT_EQ(here_.fabric->counters().sockets, 3U);
  for (size_t number = 0; number < 3; ++number) EXPECT_EQ(Sockets(number), 1U);
}

// TRK8: those that begin before the peer has told how many adapters it has.
TEST_F(SharedAddressTest, LanesThatBeginTogetherShareATrunkForEachAdapter) {
  constexpr uint32_t kLanes = 16;
  for (const uint32_t adapters : {1U, 3U}) {
    there_.clear();
    here_ = Adapter();
    Start(adapters, /*shares_sockets=*/true);
    std::vector<ConnectionId> ids;
    for (uint32_t group = 0; group < kLanes; ++group) {
      ids.push_back(BeginConnect(group));
    }
    for (uint32_t group = 0; group < kLanes; ++group) Accept(group);
    for (uint32_t group = 0; group < kLanes; ++group) {
      Await(here_, Kind::kEstablished);
    }
    for (uint32_t group = 0; group < kLanes; ++group) {
      ExpectWorks(ids[group], group);
    }
    EXPECT_EQ(here_.fabric->counters().sockets, adapters);
  }
}

// The adapter that accepts answers: who waits for another adapter does not wait
// for one that stands still.
TEST_F(SharedAddressTest, LanesDoNotWaitForAnotherAdapter) {
  Start(/*adapters=*/3, /*shares_sockets=*/true);
  stands_still_ = 1;
  BeginConnect(1);
  const ConnectionId other = BeginConnect(2);
  Accept(2);
  EXPECT_EQ(Await(here_, Kind::kEstablished).connection, other);
  ExpectWorks(other, 2);
  EXPECT_TRUE(exchange_->HasFor(1));
}

// A hello of no known form belongs to nobody: any adapter may reject it.
TEST_F(SharedAddressTest, RequestWithoutAGroupStaysWhereItIs) {
  Start(/*adapters=*/3, /*shares_sockets=*/false);
  ASSERT_TRUE(here_.fabric->Connect(address_, "none", Deadline()).ok());
  EXPECT_EQ(Await(*there_[0], Kind::kRequested).private_data, "none");
}

// TF12. The lanes beside it go on.
TEST_F(SharedAddressTest, LaneOfAnotherAdaptersGroupIsMalformed) {
  Start(/*adapters=*/3, /*shares_sockets=*/true);
  const Descriptor raw = ConnectRaw();
  Send(raw, Joined({TrunkHello(1), Frame(1, Request("1")),
                    Frame(2, Request("2")), Frame(3, Request("4"))}));
  Until([&] { return Requested(1).size() == 2; });
  EXPECT_THAT(Requested(1), ElementsAre("1", "4"));
  EXPECT_THAT(there_[1]->rejected, SizeIs(1));
  for (const size_t number : {0, 2}) EXPECT_THAT(Requested(number), IsEmpty());
  EXPECT_FALSE(IsClosed(raw));
}

// ---- On the way

// XCH2.
TEST_F(SharedAddressTest, BytesThatWereReadGoWithTheSocket) {
  Start(/*adapters=*/3, /*shares_sockets=*/true);
  const Descriptor trunk = ConnectRaw();
  Send(trunk, Joined({TrunkHello(2), Frame(1, Request("2")),
                      Frame(2, Request("5")), Frame(3, Request("8"))}));
  Until([&] { return Requested(2).size() == 3; });
  EXPECT_THAT(Requested(2), ElementsAre("2", "5", "8"));
  const Descriptor alone = ConnectRaw();
  Send(alone, Joined({Request("1"), Ping()}));
  const auto request = Await(*there_[1], Kind::kRequested);
  EXPECT_EQ(request.private_data, "1");
  std::array<std::byte, kWireHeaderBytes> pong;
  size_t got = 0;
  Until([&] {
    got += fabric::tcp::ReceiveSome(alone, std::span(pong).subspan(got)).bytes;
    return got == pong.size();
  });
  EXPECT_EQ(fabric::tcp::DecodeHeader(pong, {})->opcode,
            fabric::tcp::WireOpcode::kPong);
}

TEST_F(SharedAddressTest, BytesMayComeOneByOne) {
  Start(/*adapters=*/2, /*shares_sockets=*/true);
  for (const auto& bytes :
       {Request("1"), Joined({TrunkHello(1), Frame(1, Request("1"))})}) {
    const Descriptor raw = ConnectRaw();
    for (const std::byte& one : bytes) {
      Send(raw, {&one, 1});
      Turn();
    }
    EXPECT_EQ(Await(*there_[1], Kind::kRequested).private_data, "1");
  }
}

// A peer that asks before it has said what it wants.
TEST_F(SharedAddressTest, AnswersGoBeforeTheSocketDoes) {
  Start(/*adapters=*/2, /*shares_sockets=*/false);
  const Descriptor raw = ConnectRaw();
  Send(raw, Joined({Ping(), Request("1")}));
  EXPECT_EQ(Await(*there_[1], Kind::kRequested).private_data, "1");
  std::array<std::byte, kWireHeaderBytes> pong;
  size_t got = 0;
  Until([&] {
    got += fabric::tcp::ReceiveSome(raw, std::span(pong).subspan(got)).bytes;
    return got == pong.size();
  });
  EXPECT_EQ(fabric::tcp::DecodeHeader(pong, {})->opcode,
            fabric::tcp::WireOpcode::kPong);
}

TEST_F(SharedAddressTest, SocketThatEndsOnTheWayIsForgotten) {
  Start(/*adapters=*/2, /*shares_sockets=*/true);
  stands_still_ = 1;
  {
    const Descriptor trunk = ConnectRaw();
    const Descriptor alone = ConnectRaw();
    Send(trunk, TrunkHello(1));
    Send(alone, Request("1"));
    Until([&] { return exchange_->HasFor(1) && Sockets(0) == 0; });
  }
  stands_still_ = ~size_t{0};
  Until([&] {
    return there_[1]->fabric->counters().brought == 2 && Sockets(1) == 0;
  });
  there_[1]->events.clear();  // of the one that was alone
  ConnectAndWork(1);
}

// XCH4.
TEST_F(SharedAddressTest, SocketsForAnAdapterThatIsGoneAreClosed) {
  Start(/*adapters=*/2, /*shares_sockets=*/true);
  stands_still_ = 1;
  const Descriptor before = ConnectRaw();
  Send(before, TrunkHello(1));
  Until([&] { return exchange_->HasFor(1); });
  there_[1]->fabric.reset();
  Until([&] { return IsClosed(before); });
  const Descriptor after = ConnectRaw();
  Send(after, TrunkHello(1));
  Until([&] { return IsClosed(after); });
  EXPECT_EQ(Sockets(0), 0U);
}

TEST_F(SharedAddressTest, AdapterThatSleepsIsWoken) {
  Start(/*adapters=*/2, /*shares_sockets=*/true);
  stands_still_ = 1;
  const auto waits = [&] { return there_[1]->fabric->counters().wait_calls; };
  const uint64_t before = waits();
  std::atomic<bool> is_over{false};
  std::thread sleeper([&] {
    std::vector<ConnectionEvent> events;
    while (!is_over) {
      there_[1]->fabric->Poll({}, &events);
      if (!events.empty()) break;
      there_[1]->fabric->WaitForActivity(Deadline());
    }
    for (const ConnectionEvent& event : events) {
      EXPECT_TRUE(there_[1]->fabric->Accept(event.connection, "").ok());
    }
    there_[1]->fabric->Poll({}, &events);
  });
  // It has looked once, and waits.
  Until([&] { return waits() >= before + 2; });
  BeginConnect(1);
  Await(here_, Kind::kEstablished);
  is_over = true;
  there_[1]->fabric->Wake();
  sleeper.join();
}

// ---- Encryption

TEST_F(SharedAddressTest, SessionOfTlsGoesWithTheSocket) {
  for (const bool shares_sockets : {false, true}) {
    there_.clear();
    here_ = Adapter();
    Start(/*adapters=*/3, shares_sockets,
          MakeTls(TestNodeAuthority(), "URI:test://here"),
          MakeTls(TestNodeAuthority(), "URI:test://there"));
    for (uint32_t group = 0; group < 6; ++group) {
      ConnectAndWork(group);
      EXPECT_EQ(peer_name_, "test://here");
    }
    EXPECT_EQ(there_[1]->fabric->counters().brought, shares_sockets ? 1U : 2U);
  }
}

// TF11. Its handshake ended before the list came, at another adapter.
TEST_F(SharedAddressTest, PeerThatIsRevokedOnTheWayIsEnded) {
  const TestAuthority& authority = TestNodeAuthority();
  const TestCertificate own = authority.IssueFor("URI:test://here");
  TlsTexts texts =
      TlsTextsFor(authority, authority.IssueFor("URI:test://there"));
  texts.revoked = authority.Revoke({});
  const auto before = TlsSettings::Make(texts);
  texts.revoked = authority.Revoke({own.certificate});
  const auto after = TlsSettings::Make(texts);
  const auto here = TlsSettings::Make(TlsTextsFor(authority, own));
  ASSERT_TRUE(before.ok() && after.ok() && here.ok());
  for (const bool shares_sockets : {false, true}) {
    there_.clear();
    here_ = Adapter();
    Start(/*adapters=*/2, shares_sockets, *here, *before);
    // Adapter 1 has the list, and has looked through what it had.
    there_[1]->tls = *after;
    clock_.Forward(1'000'000'000);
    for (int turn = 0; turn < 4; ++turn) Poll(*there_[1]);
    BeginConnect(1);
    EXPECT_EQ(Await(here_, Kind::kUnreachable).kind, Kind::kUnreachable);
    EXPECT_THAT(Requested(1), IsEmpty());
    ASSERT_THAT(there_[1]->rejected, SizeIs(1));
    EXPECT_THAT(there_[1]->rejected.front(), HasSubstr("revoked"));
  }
}

// ---- Peers that do not answer

// TRK8.
TEST_F(SharedAddressTest, LaneWaitsForTheAnswerAndForNothingElse) {
  Start(/*adapters=*/1, /*shares_sockets=*/true);
  const auto listener = fabric::tcp::ListenOn("127.0.0.4:0");
  ASSERT_TRUE(listener.ok());
  const Deadline soon = Deadline::AtNanos(clock_.NowNanos() + 50'000'000);
  const auto first = here_.fabric->Connect(listener->address, "1", Deadline());
  const auto second = here_.fabric->Connect(listener->address, "2", soon);
  ASSERT_TRUE(first.ok() && second.ok());
  fabric::tcp::Accepted peer;
  Until([&] {
    peer = fabric::tcp::AcceptOne(listener->socket);
    return peer.outcome == fabric::tcp::AcceptOutcome::kSome;
  });
  // The hello and the first lane's request come, and nothing of the second.
  EXPECT_EQ(Await(here_, Kind::kUnreachable).connection, *second);
  std::vector<std::byte> all(4096);
  all.resize(fabric::tcp::ReceiveSome(peer.socket, all).bytes);
  const auto hello = Trunk::Hello(1);
  const size_t expected =
      hello.size() + Trunk::kFrameHeaderBytes + Request("1").size();
  ASSERT_GE(all.size(), expected);
  EXPECT_TRUE(std::ranges::equal(hello, std::span(all).first(hello.size())));
  for (size_t at = hello.size(); at < all.size();) {
    const uint64_t words = fabric::tcp::GetWord(&all[at]);
    EXPECT_EQ(static_cast<uint32_t>(words), 1U) << "a lane that waits";
    at += Trunk::kFrameHeaderBytes + (words >> 32);
  }
}

TEST_F(SharedAddressTest, MalformedAnswerEndsTheTrunk) {
  Start(/*adapters=*/1, /*shares_sockets=*/true);
  const auto listener = fabric::tcp::ListenOn("127.0.0.4:0");
  ASSERT_TRUE(listener.ok());
  auto other_version = Trunk::Answer(1);
  other_version[4] = std::byte{2};
  auto no_magic = Trunk::Answer(1);
  no_magic[0] = std::byte{0};
  for (const auto& answer : {Trunk::Answer(0), Trunk::Answer(kGroups + 1),
                             other_version, no_magic}) {
    ASSERT_TRUE(here_.fabric->Connect(listener->address, "1", Deadline()).ok());
    fabric::tcp::Accepted peer;
    Until([&] {
      peer = fabric::tcp::AcceptOne(listener->socket);
      return peer.outcome == fabric::tcp::AcceptOutcome::kSome;
    });
    Send(peer.socket, answer);
    EXPECT_EQ(Await(here_, Kind::kUnreachable).kind, Kind::kUnreachable);
  }
}

TEST_F(SharedAddressTest, HelloOfNoGroupIsMalformed) {
  Start(/*adapters=*/2, /*shares_sockets=*/true);
  const Descriptor raw = ConnectRaw();
  Send(raw, Joined({TrunkHello(kGroups), Frame(1, Request("1"))}));
  Until([&] { return IsClosed(raw); });
  EXPECT_THAT(there_[0]->rejected, SizeIs(1));
}

// ---- The exchange alone

// A stream that says when it is closed.
class FakeStream final : public Stream {
 public:
  FakeStream(int number, std::vector<int>* closed)
      : number_(number), closed_(*closed) {}
  ~FakeStream() override { closed_.push_back(number_); }

  bool is_open() const override { return true; }
  void Close() override {}
  bool is_ready() const override { return true; }
  TlsSession::Progress MakeReady() override {
    return TlsSession::Progress::kDone;
  }
  std::string peer_name() const override { return ""; }
  std::string failure() const override { return ""; }
  bool has_ended() const override { return false; }
  bool FailIfRevoked(const TlsSettings& /*now*/) override { return false; }
  bool IsTrustedBy(const TlsSettings& /*now*/) const override { return true; }
  bool is_offloaded() const override { return false; }
  IoResult Send(std::span<iovec> /*from*/) override { return {}; }
  bool has_unsent() const override { return false; }
  void Flush() override {}
  uint64_t sent_bytes() const override { return 0; }
  void EndSending() override {}
  IoResult Receive(std::span<std::byte> /*into*/) override { return {}; }
  bool has_unread() const override { return false; }
  bool HasDrained(size_t /*received*/, size_t /*room*/) const override {
    return true;
  }
  void Watch(bool /*in*/, bool /*out*/) override {}
  void LeaveAdapter() override {}
  void JoinAdapter(Poller& /*poller*/, uint64_t /*tag*/,
                   fabric::tcp::TcpFabricCounters& /*counters*/) override {}

 private:
  const int number_;
  std::vector<int>& closed_;
};

// XCH3.
TEST(SocketExchangeTest, OldestSocketMakesRoomWhereAnAdapterStandsStill) {
  constexpr int kMax = static_cast<int>(SocketExchange::kInboxMax);
  std::vector<int> closed;
  SocketExchange exchange(2);
  Poller poller;
  exchange.Join(1, poller);
  for (int i = 0; i < kMax + 2; ++i) {
    exchange.Bring(
        1, {std::make_unique<FakeStream>(i, &closed), "peer", 0, false, {}});
  }
  EXPECT_THAT(closed, ElementsAre(0, 1));
  EXPECT_FALSE(exchange.HasFor(0));
  EXPECT_THAT(exchange.TakeFor(1), SizeIs(kMax));
  EXPECT_FALSE(exchange.HasFor(1));
  EXPECT_THAT(closed, SizeIs(kMax + 2));
}

TEST(SocketExchangeTest, NobodyIsThereBeforeJoinAndAfterLeave) {
  std::vector<int> closed;
  SocketExchange exchange(1);
  Poller poller;
  exchange.Bring(
      0, {std::make_unique<FakeStream>(1, &closed), "peer", 0, false, {}});
  EXPECT_THAT(closed, ElementsAre(1));
  exchange.Join(0, poller);
  exchange.Bring(
      0, {std::make_unique<FakeStream>(2, &closed), "peer", 0, false, {}});
  EXPECT_THAT(closed, ElementsAre(1));
  exchange.Leave(0);
  EXPECT_THAT(closed, ElementsAre(1, 2));
  EXPECT_FALSE(exchange.HasFor(0));
}

}  // namespace
}  // namespace alpheus::testing
