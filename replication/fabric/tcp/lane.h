// SPDX-License-Identifier: Apache-2.0
// lane: the stream of a connection that shares its socket with others.
//
// The bytes that arrive are handed to the connection by the trunk's owner:
// Receive has nothing.
//
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_LANE_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/trunk.h"

namespace alpheus::fabric::tcp {

class Lane final : public Stream {
 public:
  Lane(std::shared_ptr<Trunk> trunk, ConnectionId connection)
      : trunk_(std::move(trunk)), connection_(connection) {}
  ~Lane() override { Lane::Close(); }

  bool is_open() const override;
  void Close() override;
  // TRK8.
  bool is_ready() const override { return !is_held_ && trunk_->is_ready(); }
  TlsSession::Progress MakeReady() override;
  std::string peer_name() const override;
  std::string failure() const override;
  bool has_ended() const override;
  // The trunk's certificate is the trunk's to check.
  bool FailIfRevoked(const TlsSettings& /*now*/) override { return false; }
  bool IsTrustedBy(const TlsSettings& now) const override;
  bool is_offloaded() const override { return false; }
  IoResult Send(std::span<iovec> from) override;
  bool has_unsent() const override;
  void Flush() override {}
  uint64_t sent_bytes() const override;
  void EndSending() override;
  IoResult Receive(std::span<std::byte> into) override;
  bool has_unread() const override { return false; }
  bool HasDrained(size_t received, size_t room) const override;
  void Watch(bool in, bool out) override;
  void LeaveAdapter() override {}
  void JoinAdapter(Poller& /*poller*/, uint64_t /*tag*/,
                   TcpFabricCounters& /*counters*/) override {}

 private:
  friend class Trunk;

  std::shared_ptr<Trunk> trunk_;
  const ConnectionId connection_;
  bool is_closed_ = false;
  bool is_held_ = false;  // the trunk's to set
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_LANE_H_
