// SPDX-License-Identifier: Apache-2.0
// stream: the bytes between two adapters, as they are or encrypted (tls.h).
//
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_STREAM_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/tls.h"

namespace alpheus::fabric::tcp {

class Stream {
 public:
  // Takes the socket. `tls`: what it is encrypted with; null: it is not.
  Stream(Descriptor socket, std::shared_ptr<const TlsSettings> tls,
         TlsSession::Side side);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Descriptor& socket() const { return socket_; }
  bool is_open() const { return socket_.is_open(); }
  // Closes the socket.
  void Close();

  // Returns whether bytes may go: TLS's handshake is over, or there is none.
  bool is_ready() const { return is_ready_; }
  // Goes on with the handshake. Requires: the socket is connected.
  TlsSession::Progress MakeReady();
  // Returns who the peer is; empty: unknown. failure(): why MakeReady, or the
  // stream after it, failed; empty: nobody says. Requires: MakeReady returned
  // kDone, or kFailed.
  std::string peer_name() const;
  std::string failure() const;
  // Returns whether the peer ended the connection in the handshake of TLS,
  // without any fault.
  bool has_ended() const;
  // Fails if `now`, which may be other settings than those of the handshake,
  // revokes the peer's certificate. Returns whether it does. Requires:
  // is_ready(), and that it is encrypted.
  bool FailIfRevoked(const TlsSettings& now);

  // Requires for all below: is_ready().

  // Returns whether the kernel encrypts and decrypts.
  bool is_offloaded() const;

  // Sends from the front; what the result counts is taken.
  IoResult Send(std::span<iovec> from);
  // Returns whether bytes that were taken wait for the kernel; Flush sends
  // them.
  bool has_unsent() const;
  void Flush();
  // Returns the bytes that the kernel has taken so far, as they are on the way.
  uint64_t sent_bytes() const;
  // Ends sending; the peer sees the end of the stream. Requires: !has_unsent().
  void EndSending();

  IoResult Receive(std::span<std::byte> into);
  // Returns whether Receive may have more, though the socket has nothing.
  bool has_unread() const;
  // Returns whether nothing more came with what Receive returned, of so many
  // bytes for so much room.
  bool HasDrained(size_t received, size_t room) const;

 private:
  Descriptor socket_;
  const std::shared_ptr<const TlsSettings> settings_;
  std::unique_ptr<TlsSession> session_;  // null: not encrypted
  bool is_ready_;
  uint64_t sent_bytes_ = 0;  // not encrypted
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_STREAM_H_
