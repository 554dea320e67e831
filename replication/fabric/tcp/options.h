// SPDX-License-Identifier: Apache-2.0
// options: settings and counters of a software adapter.
//
// Thread safety: values.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_OPTIONS_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/socket_exchange.h"
#include "replication/fabric/tcp/tls.h"

namespace alpheus::fabric::tcp {

struct TcpFabricOptions {
  Fabric::Limits limits = {.sends_max = 1024,
                           .receives_max = 4096,
                           .message_bytes_max = uint64_t{64} << 20,
                           .private_bytes_max = 4096,
                           .retry_ns = 2'000'000'000};

  // Nanoseconds that a write with immediate, or a send, waits for a receive
  // (FB6).
  int64_t receiver_wait_ns = 500'000'000;

  // Bytes that a peer may have in flight towards this adapter, which may have
  // to keep them; a larger message goes alone. Set it above a fast network's
  // bandwidth times its delay.
  uint64_t window_bytes = uint64_t{4} << 20;

  // Bytes that all connections together keep of peers' requests that wait for a
  // receive, or for their peer to take answers. Beyond it those connections are
  // not read.
  uint64_t kept_bytes_max = uint64_t{16} << 20;

  // Unauthenticated connections: those that have said nothing yet, or that were
  // rejected and hear why. If more come, the oldest of the host that has most
  // makes room.
  uint32_t anonymous_max = 64;

  // Called for each peer that the adapter ends by itself. `detail`: more about
  // kNotTrusted, without a full stop. Runs under the adapter's lock: it must
  // not call the adapter.
  std::function<void(std::string_view peer, UnauthenticatedEnd why,
                     std::string_view detail)>
      on_rejected;

  // Returns with what connections that begin now are encrypted, in both
  // directions: certificate, authorities and lists of revoked certificates.
  // Null: nothing is encrypted. Peers that do otherwise are ended. Called when
  // a connection begins, and once a second. Runs under the adapter's lock: it
  // must not call the adapter.
  std::function<std::shared_ptr<const TlsSettings>()> tls;

  // Connections to the same address share a socket (trunk.h). A peer's trunks
  // are accepted in any case.
  bool shares_sockets = false;

  // Returns the group of a connection, below kGroups, by the private data of
  // the request to connect; nothing: these do not say. Both sides compute it.
  // Null: all are of group 0. Runs under the adapter's lock: it must not call
  // the adapter.
  std::function<std::optional<uint32_t>(std::string_view private_data)>
      group_of;
  // The adapters that share an address, of which one listens, and the number of
  // this one among them. Null: it is the only one.
  std::shared_ptr<SocketExchange> exchange;
  uint32_t adapter = 0;

  // Number of the host to connect from; empty: the kernel chooses.
  std::string source_host;

  // Gets one sentence when connections can't be accepted for lack of
  // descriptors, once until that is over. Runs under the adapter's lock: it
  // must not call the adapter.
  std::function<void(const std::string&)> warn;
};

// Counts since the adapter was made.
struct TcpFabricCounters {
  uint64_t send_calls = 0;     // sendmsg
  uint64_t receive_calls = 0;  // recv
  uint64_t wait_calls = 0;     // epoll_wait
  uint64_t rejected = 0;       // peers that the adapter ended by itself
  uint64_t accept_pauses = 0;  // for lack of descriptors
  uint64_t kept_bytes = 0;     // kept now; see kept_bytes_max
  uint64_t offloaded = 0;      // sockets that the kernel encrypted
  uint64_t sockets = 0;        // there now, the listener aside
  uint64_t brought = 0;        // sockets that came from another adapter
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_OPTIONS_H_
