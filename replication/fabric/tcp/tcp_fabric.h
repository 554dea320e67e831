// SPDX-License-Identifier: Apache-2.0
// tcp_fabric: a software adapter: one-sided operations over TCP for hosts
// without RDMA adapters.
//
// Idea: each connection is one stream of requests and answers, on a TCP socket
// of its own or on a trunk, which others share. A polling thread makes the
// adapter's progress inline, for peers' requests on this host's memory as well.
// The adapter starts no thread.
//
// Invariants, beyond those of fabric.h:
//   TF1. Memory of this host is touched only under the adapter's lock, after
//        key, bounds and access were checked in the same step. So when Close or
//        Deregister has returned, nothing lands any more (FB5).
//   TF2. A stand-in's RunTurn never makes Poll wait for more than one turn: it
//        steps back while any other thread wants the lock.
//   TF3. A peer that sends malformed bytes loses its own connection and nothing
//        else.
//   TF4. A Poll that brings completions may delay the acknowledgements of
//        what it executed. A caller that takes completions tends to post in
//        return, and both then leave in one system call, the dearest thing
//        here. The first Poll after 20 us sends them in any case, RunTurn and
//        WaitForActivity at once, and nothing is delayed while a thread waits.
//   TF5. A Poll that has no room for completions, and sent posted work, does
//        not receive: its caller comes again to receive. Nor does the Poll
//        after it, if the caller slept before the last Poll that received, not
//        20 us ago: no answer can be there yet, and the caller will sleep.
//   TF6. Nothing is left of a connection that was closed or rejected.
//   TF7. Without descriptors nothing ends and nothing spins: connecting fails,
//        and peers that want to connect wait until there are some.
//   TF8. Silent connections keep nobody out: the oldest one of the host that
//        has most of them makes room.
//   TF9. A turn receives from a few connections, and what it owes them leaves
//        before it receives from others. Epoll names ready ones by turns. A
//        turn that checks timers receives from many first.
//   TF10. A Wake ends the waits of one moment, of now or later, and no more.
//   TF11. Connections begin with the settings of TLS as they are then. Others
//         go on when these are replaced, but for those whose peer's certificate
//         is revoked now: they break at the next turn that checks timers, a
//         second later at most.
//   TF12. Of several adapters that share an address, each has the connections
//         of its groups alone (XCH1 of socket_exchange.h). A peer that asks at
//         a lane for another one's is malformed.
// Thread safety: all members concurrently.
// References: docs/design/fabric.md#the-wire-of-the-adapter-over-tcp-version-1.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_TCP_FABRIC_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_TCP_FABRIC_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "log/base/clock.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "replication/fabric/tcp/connection.h"
#include "replication/fabric/tcp/options.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/trunks.h"

namespace alpheus::fabric::tcp {

class TcpFabric final : public Fabric, private Trunks::Connections {
 public:
  // `clock` and `random`, from which keys are drawn, must outlive the fabric.
  TcpFabric(const TcpFabricOptions& options, const Clock& clock,
            RandomSource& random);
  ~TcpFabric() override;

  Limits limits() const override { return options_.limits; }
  absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                     RemoteAccess access) override;
  absl::Status Deregister(RegionKey key) override;
  absl::StatusOr<std::string> Listen(std::string_view address) override;
  absl::StatusOr<ConnectionId> Connect(std::string_view address,
                                       std::string_view private_data,
                                       Deadline deadline) override;
  absl::Status Accept(ConnectionId id, std::string_view private_data) override;
  absl::Status Reject(ConnectionId id, std::string_view private_data) override;
  absl::Status Close(ConnectionId id) override;
  absl::Status Post(ConnectionId id, const WorkRequest& request) override;
  absl::Status PostReceive(ConnectionId id, WorkId work,
                           LocalBytes into) override;
  size_t Poll(std::span<Completion> completions,
              std::vector<ConnectionEvent>* events) override;
  bool RunTurn() override;
  // Wakes in whole milliseconds, rounded up.
  void WaitForActivity(Deadline deadline) override;
  void Wake() override;

  TcpFabricCounters counters() const;

 private:
  class Lock;  // tcp_fabric_lock.h

  // The listener's tag; connections have their ids, which are never so large.
  static constexpr uint64_t kListenerTag = ~uint64_t{0};

  // `has_room`: for completions.
  bool Advance(int64_t now, bool may_delay, bool has_room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends. With `may_delay`, answers that would go alone are delayed (TF4).
  bool SendPosted(int64_t now, bool may_delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Receives from the connection that is known to be ready, if there is one.
  // Else returns false, and epoll must be asked.
  bool ReceiveWithoutAsking(int64_t now, bool* moved)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `work`. Where memory runs out the connection breaks, and no other.
  template <class Work>
  bool Guard(Connection& connection, int64_t now, const Work& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Receives from up to so many connections that are ready (TF9).
  bool ReceiveReady(int64_t now, size_t connections_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether other adapters may have brought sockets.
  bool MayHaveBrought() const {
    return options_.exchange != nullptr &&
           options_.exchange->HasFor(options_.adapter);
  }
  // Takes these.
  bool TakeBrought(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins a trunk here, or brings the socket to the adapter that has its
  // group.
  void Depart(ConnectionId id, Connection::Departure departure,
              const std::string& peer, int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoomForUnauthenticated() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AcceptWaiting(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stops accepting while descriptors are short (EMFILE, ENFILE).
  void PauseAccepting(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResumeAccepting(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks what connections are to be encrypted with now.
  void AskForTls(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunTimers(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t NextTimer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using ConnectionMap = std::map<ConnectionId, std::unique_ptr<Connection>>;

  // Adds a connection with a socket of its own.
  void Add(Descriptor socket, std::string peer,
           std::optional<std::string> private_data, Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ConnectionMap::iterator Erase(ConnectionMap::iterator entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Receives from the connection, or the trunk, that is watched under this
  // number.
  bool ReceiveFrom(ConnectionId id, int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the number of the only socket; 0: there are none, or several.
  ConnectionId LoneSocket() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunTimersOfConnections(int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Trunks::Connections.
  ConnectionId NewId() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ConnectionId(++last_id_);
  }
  void AddLane(ConnectionId id, std::unique_ptr<Stream> lane,
               const std::string& peer, std::optional<std::string> private_data,
               Deadline deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PrepareForPeer(int64_t now) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    AskForTls(now);
    MakeRoomForUnauthenticated();
  }
  bool OnReady(ConnectionId id, int64_t now) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OnBytes(ConnectionId id, std::span<const std::byte> bytes,
               int64_t now) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OnRoom(ConnectionId id, int64_t now) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OnEnd(ConnectionId id, int64_t now) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSent(ConnectionId id, int64_t now) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has a connection do `work`, and send.
  template <class Work>
  bool GoOn(ConnectionId id, int64_t now, const Work& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns nullptr if there is none that the application knows.
  Connection* Find(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets a connection with which the application is done: no event of it
  // comes any more.
  void Forget(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIfDead(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkForSending(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if there is something for a waiting thread.
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeWaiters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPost(ConnectionId id, const WorkRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TcpFabricOptions options_;
  const Clock& clock_;

  mutable Mutex mutex_;
  // Number of threads that want the lock, stand-ins aside.
  mutable std::atomic<int> wanting_{0};

  Poller poller_;  // safe by itself
  RegionTable regions_ ABSL_GUARDED_BY(mutex_);
  TcpFabricCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::byte> buffer_ ABSL_GUARDED_BY(mutex_);
  Shared shared_ ABSL_GUARDED_BY(mutex_);
  Listener listener_ ABSL_GUARDED_BY(mutex_);
  ConnectionMap connections_ ABSL_GUARDED_BY(mutex_);
  Trunks trunks_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // When accepting continues; the largest value: it is not paused.
  int64_t accept_at_ ABSL_GUARDED_BY(mutex_) = Deadline().at_nanos();
  bool is_exhausted_ ABSL_GUARDED_BY(mutex_) = false;  // and this was reported

  // Connections with something to send.
  std::vector<ConnectionId> sending_ ABSL_GUARDED_BY(mutex_);
  // The connection that woke a waiting thread; 0: none.
  ConnectionId ready_ ABSL_GUARDED_BY(mutex_);
  // Until when answers are delayed; 0: none are.
  int64_t delay_until_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last Poll only handed over what was posted (TF5).
  bool has_handed_over_ ABSL_GUARDED_BY(mutex_) = false;
  // A thread slept since the last turn that received, and before that turn.
  bool has_slept_ ABSL_GUARDED_BY(mutex_) = false;
  bool caller_sleeps_ ABSL_GUARDED_BY(mutex_) = false;
  // When a turn last received.
  int64_t received_at_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t lone_turns_ ABSL_GUARDED_BY(mutex_) = 0;
  // When settings of TLS are asked for again; the largest value: never.
  int64_t ask_for_tls_at_ ABSL_GUARDED_BY(mutex_) = Deadline().at_nanos();
  // They were replaced, and connections have not been checked since.
  bool has_new_tls_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t tick_at_ ABSL_GUARDED_BY(mutex_) = 0;  // when timers are checked
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
  // One of them was woken by Wake.
  bool is_woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_TCP_FABRIC_H_
