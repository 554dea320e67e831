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

  void SetUp() override {
    for (int host = 0; host < 2; ++host) {
      memory_[host].resize(kBytes / 8);
      key_[host] = *fabric(host).Register(Memory(host), RemoteAccess::kAll);
    }
    address_ = *fabric(1).Listen(world_.ListenAddress(1));
  }

  TcpFabric& fabric(int host) { return world_.fabric(host); }
  std::span<std::byte> Memory(int host) {
    return std::as_writable_bytes(std::span(memory_[host]));
  }
  LocalBytes Local(int host, size_t offset, size_t bytes) {
    return {key_[host], Memory(host).subspan(offset, bytes)};
  }
  RemoteAddress At(uint64_t offset) { return {key_[1], offset}; }

  void Poll(int host) {
    std::array<Completion, 64> some;
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
  std::optional<ConnectionEvent> Await(int host, ConnectionEvent::Kind kind) {
    const auto find = [&] {
      return std::ranges::find(events_[host], kind, &ConnectionEvent::kind);
    };
    if (!Until([&] { return find() != events_[host].end(); })) return {};
    ConnectionEvent event = *find();
    events_[host].erase(find());
    return event;
  }
  bool AwaitCompletions(int host, size_t count) {
    return Until([&] { return completions_[host].size() >= count; });
  }

  // Host 0 connects to host 1.
  void Connect() {
    at_[0] = *fabric(0).Connect(address_, "", Deadline());
    const auto request = Await(1, ConnectionEvent::Kind::kRequested);
    ASSERT_TRUE(request);
    at_[1] = request->connection;
    ASSERT_TRUE(fabric(1).Accept(at_[1], "").ok());
    ASSERT_TRUE(Await(0, ConnectionEvent::Kind::kEstablished));
    ASSERT_TRUE(Await(1, ConnectionEvent::Kind::kEstablished));
  }

  // A peer that is no adapter.
  tcp::Descriptor ConnectRaw() {
    return *tcp::StartConnect(address_, /*source=*/"127.0.0.3");
  }
  void SendRaw(const tcp::Descriptor& socket,
               std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const auto result = tcp::SendSome(socket, {&piece, 1});
      ASSERT_NE(result.outcome, tcp::IoOutcome::kClosed);
      bytes = bytes.subspan(result.bytes);
      world_.Pass();
      Poll(1);
    }
  }
  // Everything up to the end of the stream, or `bytes` of it.
  std::vector<std::byte> ReceiveRaw(const tcp::Descriptor& socket,
                                    size_t bytes) {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> some;
    Until([&] {
      tcp::IoResult result;
      do {
        const size_t room = std::min(some.size(), bytes - all.size());
        result = tcp::ReceiveSome(socket, std::span(some).first(room));
        all.insert(all.end(), some.begin(),
                   some.begin() + static_cast<int64_t>(result.bytes));
        is_closed_ = result.outcome == tcp::IoOutcome::kClosed;
      } while (all.size() < bytes && result.outcome == tcp::IoOutcome::kSome);
      return is_closed_ || all.size() >= bytes;
    });
    return all;
  }
  static std::vector<std::byte> RawHello(uint32_t version) {
    auto bytes = tcp::EncodeHeader({.opcode = tcp::WireOpcode::kHello,
                                    .immediate = version,
                                    .length = tcp::kWireHelloBytes,
                                    .key = 0,
                                    .offset = 0,
                                    .sequence = 0});
    const auto hello = tcp::EncodeHello({.sends_max = 1,
                                         .receives_max = 1,
                                         .message_bytes_max = 1 << 20,
                                         .window_bytes = 1 << 20});
    std::vector<std::byte> all(bytes.begin(), bytes.end());
    all.insert(all.end(), hello.begin(), hello.end());
    return all;
  }
  // A peer that is no adapter, and host 1's end of its connection.
  ConnectionId AcceptRaw(const tcp::Descriptor& raw) {
    SendRaw(raw, RawHello(tcp::kWireVersion));
    const auto request = Await(1, ConnectionEvent::Kind::kRequested);
    EXPECT_TRUE(request && fabric(1).Accept(request->connection, "").ok());
    EXPECT_TRUE(Await(1, ConnectionEvent::Kind::kEstablished));
    ReceiveRaw(raw, tcp::kWireHeaderBytes + tcp::kWireHelloBytes);
    return request ? request->connection : ConnectionId();
  }
  // With a payload of ones, where there is one.
  static std::vector<std::byte> RawMessage(tcp::WireHeader header) {
    const auto encoded = tcp::EncodeHeader(header);
    std::vector<std::byte> all(encoded.begin(), encoded.end());
    all.resize(all.size() + tcp::PayloadBytes(header), std::byte{1});
    return all;
  }
  // Writes and reads back over the connection of hosts 0 and 1.
  void ExpectWorks() {
    const size_t before = completions_[0].size();
    ASSERT_TRUE(
        fabric(0).PostWrite(at_[0], WorkId(1), Local(0, 0, 64), At(0)).ok());
    ASSERT_TRUE(AwaitCompletions(0, before + 1));
    EXPECT_EQ(completions_[0].back().status, CompletionStatus::kOk);
  }

  TcpWorld world_;
  std::vector<uint64_t> memory_[2];
  RegionKey key_[2];
  std::string address_;
  ConnectionId at_[2];
  std::vector<Completion> completions_[2];
  std::vector<ConnectionEvent> events_[2];
  bool is_closed_ = false;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_FABRIC_FIXTURE_H_
