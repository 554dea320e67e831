// SPDX-License-Identifier: Apache-2.0
// acceptor: accepts connections of clients, and hands them to gRPC.
//
// Idea: gRPC accepts whatever comes, as fast as it comes: one program with an
// error could take all descriptors and all memory of a node that keeps
// replicas, too. So a thread of ours listens, within limits
// (connection_limits.h), and gRPC gets what was let in.
//
//   kernel's queue --accept--> limits --descriptor--> gRPC
//                                |
//                                +--> closed, if there are too many
//
// gRPC does not say when a connection ends. But it closes the descriptor then.
// So the acceptor looks whether the descriptors are still those sockets, when
// there seem to be too many, and now and then.
//
// Invariants:
//   ACP1. A connection counts until its descriptor is closed, or some time
//         longer; but no new one is refused for one that was closed
//         `kLookEveryNs` before.
//   ACP2. Where descriptors run out, peers wait in the kernel's queue.
// Thread safety: Start and the destructor by one thread; refused by many.
// References: accept(2); epoll(7).
#ifndef ALPHEUS_API_GRPC_CONNECTIONS_ACCEPTOR_H_
#define ALPHEUS_API_GRPC_CONNECTIONS_ACCEPTOR_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/grpc/connections/connection_limits.h"
#include "api/wiring/background_thread.h"
#include "log/base/clock.h"
#include "replication/fabric/tcp/socket.h"

namespace alpheus::rpc {

class Acceptor {
 public:
  // Gets each connection that was let in, and owns its descriptor.
  using HandOver = std::function<void(int descriptor)>;
  // Gets a sentence when clients are refused or wait, once a minute at most.
  using Say = std::function<void(const std::string&)>;

  // Listens on "host:port", numbers; port 0: any. Connections wait until Start.
  // The clock must outlive it. Errors: as fabric::tcp::ListenOn.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(
      const std::string& address, const ConnectionLimitOptions& limits,
      Say say = {}, const Clock& clock = Clock::Real());
  // Accepts no more. Connections that gRPC has are its own.
  ~Acceptor();

  // Starts to accept. Errors: ResourceExhausted (no thread); Unavailable (no
  // epoll).
  absl::Status Start(HandOver hand_over);

  // Returns the address with the port that it got.
  const std::string& address() const { return listener_.address; }
  // Returns how many were open a short while ago, and how many were closed
  // because there were too many.
  uint64_t open() const { return open_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Connection {
    int descriptor;  // gRPC's
    ino_t socket;
    std::string peer;
  };

  Acceptor(fabric::tcp::Listener listener, const ConnectionLimitOptions& limits,
           Say say, const Clock& clock);

  void Run();
  // Waits for a connection, and accepts one at most.
  void Turn();
  void AcceptNext(int64_t now_ns);
  absl::Status Enter(const std::string& peer, int64_t now_ns);
  // Forgets connections that have ended.
  void LookForEnded(int64_t now_ns);
  void Tell(const std::string& sentence, int64_t now_ns);
  // Listens, or leaves those that come in the kernel's queue.
  void SetListens(bool listens);

  const fabric::tcp::Listener listener_;
  const Say say_;
  const Clock& clock_;
  HandOver hand_over_;
  fabric::tcp::Poller poller_;
  std::atomic<bool> is_over_ = false;
  std::atomic<uint64_t> open_ = 0;
  std::atomic<uint64_t> refused_ = 0;
  BackgroundThread thread_;

  // The thread's.
  ConnectionLimits limits_;
  std::vector<Connection> connections_;
  int64_t looked_ns_ = 0;
  bool listens_ = true;
  int64_t not_before_ns_ = 0;  // descriptors had run out
  int64_t quiet_until_ns_ = 0;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CONNECTIONS_ACCEPTOR_H_
