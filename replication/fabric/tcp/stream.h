// SPDX-License-Identifier: Apache-2.0
// stream: the bytes of one connection between two adapters, in both directions:
// those of a socket (socket_stream.h), or those of a lane, which travel with
// the bytes of other connections (trunk.h).
//
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_STREAM_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/tls.h"

namespace alpheus::fabric::tcp {

struct TcpFabricCounters;  // options.h

class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual bool is_open() const = 0;
  // Closes. The peer gets the bytes that were taken, and then the end.
  virtual void Close() = 0;

  // Returns whether bytes may go: TCP has connected, and TLS's handshake is
  // over where there is one.
  virtual bool is_ready() const = 0;
  // Goes on until it is ready. Requires: the poller named the socket.
  virtual TlsSession::Progress MakeReady() = 0;
  // Returns who the peer is; empty: unknown. failure(): why MakeReady, or the
  // stream after it, failed; empty: nobody says. Requires: MakeReady returned
  // kDone, or kFailed.
  virtual std::string peer_name() const = 0;
  virtual std::string failure() const = 0;
  // Returns whether the peer ended the connection in the handshake of TLS,
  // without any fault.
  virtual bool has_ended() const = 0;
  // Fails if `now`, which may be other settings than those of the handshake,
  // revokes the peer's certificate. Returns whether it does. Requires:
  // is_ready(), and that it is encrypted.
  virtual bool FailIfRevoked(const TlsSettings& now) = 0;

  // Returns whether the settings `now` would let the peer in, as a handshake
  // would. Requires: is_ready(), and that it is encrypted.
  virtual bool IsTrustedBy(const TlsSettings& now) const = 0;

  // Requires for all below: is_ready().

  // Returns whether the kernel encrypts and decrypts for this stream alone.
  virtual bool is_offloaded() const = 0;

  // Sends from the front; what the result counts is taken.
  virtual IoResult Send(std::span<iovec> from) = 0;
  // Returns whether bytes that were taken wait for the kernel; Flush sends
  // them.
  virtual bool has_unsent() const = 0;
  virtual void Flush() = 0;
  // Returns a count that grows whenever the kernel takes bytes for the peer.
  virtual uint64_t sent_bytes() const = 0;
  // Ends sending; the peer sees the end of the stream. Requires: !has_unsent().
  virtual void EndSending() = 0;

  virtual IoResult Receive(std::span<std::byte> into) = 0;
  // Returns whether Receive may have more, though the socket has nothing.
  virtual bool has_unread() const = 0;
  // Returns whether nothing more came with what Receive returned, of so many
  // bytes for so much room.
  virtual bool HasDrained(size_t received, size_t room) const = 0;

  // Chooses what the adapter is to hear of: that bytes came (`in`), that there
  // is room for more (`out`).
  virtual void Watch(bool in, bool out) = 0;

  // Takes a socket away from its adapter; has another one watch it under `tag`
  // and count its calls. It is closed if it can't be watched. Nothing else may
  // be called in between but Close and the destructor. Requires: it is a
  // socket's stream (a lane stays with its trunk).
  virtual void LeaveAdapter() = 0;
  virtual void JoinAdapter(Poller& poller, uint64_t tag,
                           TcpFabricCounters& counters) = 0;

 protected:
  Stream() = default;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_STREAM_H_
