// SPDX-License-Identifier: Apache-2.0
// log_server: listens for the service's clients, over gRPC.
//
// Idea: all of gRPC is behind this header, so that a build without it has the
// same daemon, but for one error. The server has no thread for each call or
// stream (gRPC's callback API): gRPC has a few threads of its own, one reads
// for tails that are woken, and one accepts connections (acceptor.h).
//
//   grpc.health.v1   ""                      the process is alive
//                    "alpheus/<log>/append"  this node takes requests
//                    "alpheus/<log>/tail"    this node shows records
//
// Invariants:
//   LSV1. An address that other machines reach is listened on only with TLS,
//         and with tokens or certificates of clients.
//   LSV2. Files are read again one kind after the other. What is of no use
//         changes nothing, and the rest is taken all the same: a token can be
//         revoked while the certificate's file is being written.
//   LSV3. Files of TLS that were replaced are taken by themselves: before a
//         handshake, once a second at most, they are looked at. Tokens are read
//         by Reload alone: a list that is half written may look whole.
// Thread safety: Start and the destructor by one thread; the rest by many.
// Requires: the logs are withdrawn before the destructor.
// References: docs/design/service.md;
// api/grpc/proto/alpheus/v1/log_service.proto.
#ifndef ALPHEUS_API_GRPC_SERVER_LOG_SERVER_H_
#define ALPHEUS_API_GRPC_SERVER_LOG_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/admin/administrator.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/connections/connection_limits.h"
#include "api/service/served/served_logs.h"
#include "log/base/wall_clock.h"

namespace alpheus::rpc {

struct LogServerOptions {
  // Where to listen, "host:port". Port 0: any.
  std::string listen;
  // Files with PEM: the certificate and those of its issuers, its key, and the
  // authorities whose certificates clients must show. Empty: no TLS, and no
  // such certificates.
  std::string tls_certificate = {};
  std::string tls_key = {};
  std::string tls_client_ca = {};
  // File of tokens (api/grpc/access/token_file.h). Empty: none is needed.
  std::string tokens = {};
  ConnectionLimitOptions connections = {};

  bool operator==(const LogServerOptions&) const = default;
};

class LogServer {
 public:
  // Checks what Start checks before it listens. May wait for a name server.
  // Errors: InvalidArgument (no address; a limit of 0; a certificate without a
  // key, or the reverse; an address that other machines reach, and not as LSV1
  // says; a file that can't be parsed); FailedPrecondition (others may read a
  // secret; an expired certificate); NotFound, Unavailable (a name that leads
  // nowhere); the system's for a file that can't be read; Unimplemented (built
  // without gRPC).
  static absl::Status Check(const LogServerOptions& options,
                            const WallClock& clock = WallClock::Real());
  // Listens for requests to these logs, and for orders to the administrator; if
  // that is null, it takes none. All must outlive it, as must the clock. `say`
  // gets a sentence when clients are refused or wait (acceptor.h). Errors: as
  // Check; AlreadyExists (another process has the address); Unavailable (the
  // address can't be had); ResourceExhausted (no thread).
  static absl::StatusOr<std::unique_ptr<LogServer>> Start(
      const LogServerOptions& options, service::ServedLogs& logs,
      std::function<void(const std::string&)> say = {},
      const WallClock& clock = WallClock::Real(),
      Administrator* administrator = nullptr);
  // Ends all calls. Those that are about to be answered have a second for that.
  // Waits for a change of the members, or the making of a log, that is under
  // way: a minute at most (ADC3 of admin_calls.h).
  virtual ~LogServer() = default;

  // Reads the files again (LSV2). Connections stay. Errors, which say what is
  // kept: as Check.
  virtual absl::Status Reload() = 0;
  // Returns the address on which it listens.
  virtual const std::string& address() const = 0;
  // Returns the calls since Start; lives as long as the server.
  virtual const CallCounts& counts() const = 0;
  // Returns the connections of clients, as the acceptor knows them.
  virtual ConnectionCounts connections() const = 0;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_SERVER_LOG_SERVER_H_
