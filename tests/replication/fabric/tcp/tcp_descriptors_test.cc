// SPDX-License-Identifier: Apache-2.0
// The software adapter on a host that has no descriptor left for it.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "replication/fabric/region_table.h"
#include "replication/fabric/tcp/connection.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"
#include "tests/support/fixtures/no_descriptors.h"

namespace alpheus::testing {

using fabric::tcp::Descriptor;

namespace {

using Kind = fabric::ConnectionEvent::Kind;

class TcpDescriptorsTest : public TcpFabricTest {
 protected:
  static constexpr int64_t kPauseNanos = 50'000'000;

  TcpDescriptorsTest() {
    fabric::tcp::TcpFabricOptions options;
    options.warn = [this](const std::string& said) { said_.push_back(said); };
    full_ = std::make_unique<fabric::tcp::TcpFabric>(options, world_.clock(),
                                                     random_);
    full_address_ = *full_->Listen("127.0.0.1:0");
  }

  void SetUp() override {
#if defined(ALPHEUS_SANITIZED)
    GTEST_SKIP() << "skipped: a sanitizer needs descriptors of its own";
#else
    TcpFabricTest::SetUp();
#endif
  }

  // So many turns of a program that waits for something to do.
  void Turn(int turns) {
    for (int i = 0; i < turns; ++i) {
      full_->Poll({}, &full_events_);
      full_->WaitForActivity(
          Deadline::AtNanos(world_.clock().NowNanos() + 1'000'000));
    }
  }
  uint64_t Pauses() { return full_->counters().accept_pauses; }

  // Connects to the adapter that has no descriptors.
  Descriptor ConnectRaw() {
    return *fabric::tcp::StartConnect(full_address_, /*source=*/"127.0.0.3");
  }

  Random random_{1};
  std::vector<std::string> said_;
  std::unique_ptr<fabric::tcp::TcpFabric> full_;
  std::string full_address_;
  std::vector<fabric::ConnectionEvent> full_events_;
};

TEST_F(TcpDescriptorsTest, ListenerIsNotAskedAgainAndAgainInVain) {
  const Descriptor raw = ConnectRaw();
  const NoDescriptors none;
  Turn(50);
  EXPECT_EQ(Pauses(), 1U);
  world_.clock().Forward(kPauseNanos);
  Turn(50);
  EXPECT_EQ(Pauses(), 2U);
}

TEST_F(TcpDescriptorsTest, WhoWaitsIsAcceptedWhenThereAreDescriptorsAgain) {
  const Descriptor raw = ConnectRaw();
  {
    const NoDescriptors none;
    Turn(3);
  }
  SendRaw(raw, RawHello(fabric::tcp::kWireVersion));
  Turn(10);
  EXPECT_TRUE(full_events_.empty());  // a pause is one
  world_.clock().Forward(kPauseNanos);
  Turn(10);
  ASSERT_EQ(full_events_.size(), 1U);
  EXPECT_EQ(full_events_[0].kind, Kind::kRequested);
}

TEST_F(TcpDescriptorsTest, ShortageIsSaidOnceUntilItIsOver) {
  for (size_t shortages = 1; shortages <= 2; ++shortages) {
    const Descriptor raw = ConnectRaw();
    {
      const NoDescriptors none;
      for (int i = 0; i < 3; ++i) {
        world_.clock().Forward(kPauseNanos);
        Turn(3);
      }
    }
    ASSERT_EQ(said_.size(), shortages);
    EXPECT_NE(said_.back().find(full_address_), std::string::npos);
    world_.clock().Forward(kPauseNanos);
    Turn(3);  // accepted
  }
  EXPECT_EQ(said_.size(), 2U);
}

TEST_F(TcpDescriptorsTest, ConnectingWithoutADescriptorReachesNobody) {
  const NoDescriptors none;
  const auto connection = full_->Connect(address_, "", Deadline());
  ASSERT_TRUE(connection.ok()) << connection.status();
  Turn(2);
  ASSERT_EQ(full_events_.size(), 1U);
  EXPECT_EQ(full_events_[0].kind, Kind::kUnreachable);
  EXPECT_EQ(full_events_[0].connection, *connection);
  EXPECT_TRUE(full_->Close(*connection).ok());
}

TEST_F(TcpDescriptorsTest, AdapterThatWasMadeWithoutDescriptorsSaysSo) {
  std::optional<fabric::tcp::TcpFabric> fabric;
  {
    const NoDescriptors none;
    fabric.emplace(fabric::tcp::TcpFabricOptions(), world_.clock(), random_);
  }
  EXPECT_TRUE(absl::IsUnavailable(fabric->Listen("127.0.0.1:0").status()));
  EXPECT_TRUE(
      absl::IsUnavailable(fabric->Connect(address_, "", Deadline()).status()));
  EXPECT_EQ(fabric->Poll({}, &full_events_), 0U);
  EXPECT_FALSE(fabric->RunTurn());
  fabric->Wake();
  fabric->WaitForActivity(Deadline());  // ends by itself
  EXPECT_TRUE(fabric->Register(Memory(0), fabric::RemoteAccess::kRead).ok());
}

// epoll takes no files; nor sockets when the kernel has no more watches.
TEST(PollerTest, WhatCannotBeWatchedIsAnError) {
  fabric::tcp::Poller poller;
  ASSERT_TRUE(poller.status().ok());
  EXPECT_TRUE(absl::IsUnavailable(
      poller.Add(OpenNull(), /*tag=*/1, /*in=*/true, /*out=*/false)));
}

// A wait says whether Wake ended it, so that nobody clears what never came.
TEST(PollerTest, WakeIsSaidUntilItIsCleared) {
  fabric::tcp::Poller poller;
  std::array<fabric::tcp::Poller::Ready, 1> ready;
  EXPECT_FALSE(poller.Wait(/*timeout_ns=*/0, ready).is_woken);
  poller.Wake();
  for (int i = 0; i < 2; ++i) {
    const fabric::tcp::Poller::Waited waited = poller.Wait(0, ready);
    EXPECT_TRUE(waited.is_woken);
    EXPECT_EQ(waited.count, 0U);
  }
  poller.ClearWake();
  EXPECT_FALSE(poller.Wait(0, ready).is_woken);
}

TEST(ConnectionTest, SocketThatCannotBeWatchedIsAConnectionThatFailed) {
  const fabric::tcp::TcpFabricOptions options;
  Random random(1);
  fabric::RegionTable regions(random);
  fabric::tcp::Poller poller;
  fabric::tcp::TcpFabricCounters counters;
  fabric::tcp::Shared shared{options, regions, poller, counters, {}, {}, {}};
  const auto unwatched = [&](fabric::tcp::SocketStream::Side side,
                             uint64_t tag) {
    return std::make_unique<fabric::tcp::SocketStream>(
        OpenNull(), nullptr, side, poller, tag, counters);
  };
  fabric::tcp::Connection connection(
      fabric::ConnectionId(1),
      unwatched(fabric::tcp::SocketStream::Side::kConnects, 1),
      /*is_alone=*/true, "peer", &shared, "", Deadline(), /*now=*/5);
  EXPECT_EQ(connection.next_timer(), 5);
  EXPECT_TRUE(connection.OnTimers(5));
  EXPECT_EQ(connection.state(), fabric::tcp::Connection::State::kBroken);
  ASSERT_EQ(shared.events.size(), 1U);
  EXPECT_EQ(shared.events[0].kind, Kind::kUnreachable);

  fabric::tcp::Connection accepted(
      fabric::ConnectionId(2),
      unwatched(fabric::tcp::SocketStream::Side::kAccepts, 2),
      /*is_alone=*/true, "peer", &shared, std::nullopt, Deadline(),
      /*now=*/5);
  EXPECT_TRUE(accepted.OnTimers(5));
  EXPECT_EQ(accepted.state(), fabric::tcp::Connection::State::kDead);
  EXPECT_EQ(shared.events.size(), 1U);  // nobody knew of it
}

}  // namespace
}  // namespace alpheus::testing
