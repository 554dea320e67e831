// SPDX-License-Identifier: Apache-2.0
// tcp_fabric_fixture: two software adapters, of which one listens, and peers
// that are none: they say over a socket whatever a test wants said.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_FABRIC_FIXTURE_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_FABRIC_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/replication/fabric/tcp/tcp_world.h"

namespace alpheus::testing {

class TcpFabricTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = size_t{9} << 20;

  explicit TcpFabricTest(bool shares_sockets = false)
      : world_({}, shares_sockets) {}

  void SetUp() override {
    for (int host = 0; host < 2; ++host) {
      memory_[host].resize(kBytes / 8);
      key_[host] =
          *fabric(host).Register(Memory(host), fabric::RemoteAccess::kAll);
    }
    address_ = *fabric(1).Listen(world_.ListenAddress(1));
  }

  fabric::tcp::TcpFabric& fabric(int host) { return world_.fabric(host); }
  std::span<std::byte> Memory(int host) {
    return std::as_writable_bytes(std::span(memory_[host]));
  }
  fabric::LocalBytes Local(int host, size_t offset, size_t bytes) {
    return {key_[host], Memory(host).subspan(offset, bytes)};
  }
  fabric::RemoteAddress At(uint64_t offset) { return {key_[1], offset}; }

  void Poll(int host) {
    std::array<fabric::Completion, 64> some;
    const size_t count = fabric(host).Poll(some, &events_[host]);
    completions_[host].insert(completions_[host].end(), some.begin(),
                              some.begin() + static_cast<int64_t>(count));
  }
  bool Until(const std::function<bool()>& done) {
    while (!done()) {
      const bool passed = world_.Pass();
      for (int host = 0; host < 2; ++host) Poll(host);
      if (!passed) return done();
    }
    return true;
  }
  std::optional<fabric::ConnectionEvent> Await(
      int host, fabric::ConnectionEvent::Kind kind) {
    const auto find = [&] {
      return std::ranges::find(events_[host], kind,
                               &fabric::ConnectionEvent::kind);
    };
    if (!Until([&] { return find() != events_[host].end(); })) return {};
    fabric::ConnectionEvent event = *find();
    events_[host].erase(find());
    return event;
  }
  bool AwaitCompletions(int host, size_t count) {
    return Until([&] { return completions_[host].size() >= count; });
  }

  // Host 0 connects to host 1.
  void Connect() {
    at_[0] = *fabric(0).Connect(address_, "", Deadline());
    const auto request = Await(1, fabric::ConnectionEvent::Kind::kRequested);
    ASSERT_TRUE(request);
    at_[1] = request->connection;
    ASSERT_TRUE(fabric(1).Accept(at_[1], "").ok());
    ASSERT_TRUE(Await(0, fabric::ConnectionEvent::Kind::kEstablished));
    ASSERT_TRUE(Await(1, fabric::ConnectionEvent::Kind::kEstablished));
  }

  // A peer that is no adapter.
  fabric::tcp::Descriptor ConnectRaw() {
    return *fabric::tcp::StartConnect(address_, /*source=*/"127.0.0.3");
  }
  void SendRaw(const fabric::tcp::Descriptor& socket,
               std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const auto result = fabric::tcp::SendSome(socket, {&piece, 1});
      ASSERT_NE(result.outcome, fabric::tcp::IoOutcome::kClosed);
      bytes = bytes.subspan(result.bytes);
      world_.Pass();
      Poll(1);
    }
  }
  // Everything up to the end of the stream, or `bytes` of it.
  std::vector<std::byte> ReceiveRaw(const fabric::tcp::Descriptor& socket,
                                    size_t bytes) {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> some;
    Until([&] {
      fabric::tcp::IoResult result;
      do {
        const size_t room = std::min(some.size(), bytes - all.size());
        result = fabric::tcp::ReceiveSome(socket, std::span(some).first(room));
        all.insert(all.end(), some.begin(),
                   some.begin() + static_cast<int64_t>(result.bytes));
        is_closed_ = result.outcome == fabric::tcp::IoOutcome::kClosed;
      } while (all.size() < bytes &&
               result.outcome == fabric::tcp::IoOutcome::kSome);
      return is_closed_ || all.size() >= bytes;
    });
    return all;
  }
  static std::vector<std::byte> RawHello(uint32_t version) {
    auto bytes =
        fabric::tcp::EncodeHeader({.opcode = fabric::tcp::WireOpcode::kHello,
                                   .immediate = version,
                                   .length = fabric::tcp::kWireHelloBytes,
                                   .key = 0,
                                   .offset = 0,
                                   .sequence = 0});
    const auto hello = fabric::tcp::EncodeHello({.sends_max = 1,
                                                 .receives_max = 1,
                                                 .message_bytes_max = 1 << 20,
                                                 .window_bytes = 1 << 20});
    std::vector<std::byte> all(bytes.begin(), bytes.end());
    all.insert(all.end(), hello.begin(), hello.end());
    return all;
  }
  // A peer that is no adapter, and host 1's end of its connection.
  fabric::ConnectionId AcceptRaw(const fabric::tcp::Descriptor& raw) {
    SendRaw(raw, RawHello(fabric::tcp::kWireVersion));
    const auto request = Await(1, fabric::ConnectionEvent::Kind::kRequested);
    EXPECT_TRUE(request && fabric(1).Accept(request->connection, "").ok());
    EXPECT_TRUE(Await(1, fabric::ConnectionEvent::Kind::kEstablished));
    ReceiveRaw(raw,
               fabric::tcp::kWireHeaderBytes + fabric::tcp::kWireHelloBytes);
    return request ? request->connection : fabric::ConnectionId();
  }
  // With a payload of ones, where there is one.
  static std::vector<std::byte> RawMessage(fabric::tcp::WireHeader header) {
    const auto encoded = fabric::tcp::EncodeHeader(header);
    std::vector<std::byte> all(encoded.begin(), encoded.end());
    all.resize(all.size() + fabric::tcp::PayloadBytes(header), std::byte{1});
    return all;
  }
  // Writes and reads back over the connection of hosts 0 and 1.
  void ExpectWorks() {
    const size_t before = completions_[0].size();
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(at_[0], fabric::WorkId(1), Local(0, 0, 64), At(0))
            .ok());
    ASSERT_TRUE(AwaitCompletions(0, before + 1));
    EXPECT_EQ(completions_[0].back().status, fabric::CompletionStatus::kOk);
  }

  TcpWorld world_;
  std::vector<uint64_t> memory_[2];
  fabric::RegionKey key_[2];
  std::string address_;
  fabric::ConnectionId at_[2];
  std::vector<fabric::Completion> completions_[2];
  std::vector<fabric::ConnectionEvent> events_[2];
  bool is_closed_ = false;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_FABRIC_FIXTURE_H_
