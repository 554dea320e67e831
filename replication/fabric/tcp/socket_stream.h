// SPDX-License-Identifier: Apache-2.0
// socket_stream: the bytes of a TCP socket, as they are or encrypted (tls.h).
//
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_STREAM_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "replication/fabric/tcp/options.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/tls.h"

namespace alpheus::fabric::tcp {

class SocketStream final : public Stream {
 public:
  using Side = TlsSession::Side;

  // Takes a socket that connects, or an accepted one, and has `poller` watch it
  // under `tag`. It is closed if there is none, or if it can't be watched.
  // `tls`: what it is encrypted with; null: it is not. `counters` get its
  // calls.
  SocketStream(Descriptor socket, std::shared_ptr<const TlsSettings> tls,
               Side side, Poller& poller, uint64_t tag,
               TcpFabricCounters& counters);

  bool is_open() const override { return socket_.is_open(); }
  void Close() override;
  bool is_ready() const override { return is_ready_; }
  TlsSession::Progress MakeReady() override;
  std::string peer_name() const override;
  std::string failure() const override;
  bool has_ended() const override;
  bool FailIfRevoked(const TlsSettings& now) override;
  bool IsTrustedBy(const TlsSettings& now) const override;
  bool is_offloaded() const override;
  IoResult Send(std::span<iovec> from) override;
  bool has_unsent() const override;
  void Flush() override;
  uint64_t sent_bytes() const override;
  void EndSending() override;
  IoResult Receive(std::span<std::byte> into) override;
  bool has_unread() const override;
  bool HasDrained(size_t received, size_t room) const override;
  void Watch(bool in, bool out) override;
  void LeaveAdapter() override;
  void JoinAdapter(Poller& poller, uint64_t tag,
                   TcpFabricCounters& counters) override;

 private:
  Descriptor socket_;
  // Null between two adapters.
  Poller* poller_;
  TcpFabricCounters* counters_;
  uint64_t tag_;
  const std::shared_ptr<const TlsSettings> settings_;
  std::unique_ptr<TlsSession> session_;  // null: not encrypted
  bool has_connected_;                   // TCP
  bool is_ready_;
  bool watches_in_ = true;
  bool watches_out_;
  uint64_t sent_bytes_ = 0;  // not encrypted
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_STREAM_H_
