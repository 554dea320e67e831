// SPDX-License-Identifier: Apache-2.0
// local_primary_relay: serves logs whose region a primary on the same machine
// holds, by relaying requests to it.
//
// Idea: the *local primary* says by Claim that it has the region, with this
// node's replica (P-A7). It listens for no connections, so the server can send
// it something only as a reply. Each Claim therefore has one reply, at any
// later time: the next request for the local primary.
//
//   asker's request   to the local primary   reply to the asker
//   Prepare           Wanted                 none: it waits until AddLog
//   Scrub             Scrub                  what the last Claim said
//   AskChange         AskChange              what the last Claim said of it
//   Fetch             Fetch                  Fetched, once it has come
//   Follow            none                   what its superline says
//
// An opener waits (kWaiting) while the local primary steps down and releases
// the region. Then the daemon calls AddLog, and ServeWaiting serves the opener.
// Requests for bytes of the ring (kFetching) reach the local primary one after
// the other.
//
// Invariants:
//   LPR1. A primary is sent Wanted only if the asker has proved the key, its
//         promise is above the primary's, and it knew of the primary's if it
//         says which one it knew of. Nothing is promised for a log that this
//         server does not have. Only a request for a promise makes a primary
//         step down.
//   LPR2. Bytes that a local primary shows go to the asker alone, and are no
//         more than it asked for.
//   LPR3. A log has one local primary, the one that said Claim last: the node
//         may not have heard that an older process is gone.
//   LPR4. At most one request is in flight to a local primary. Openers come
//         first, then a change of the members, then a scrub, then the fetch
//         that has waited longest.
//   LPR5. No asker waits without end. An opener waits step_down_timeout_ns from
//         the moment at which Wanted was sent to the local primary, and
//         silence_ns_max if it was not sent. An asker for bytes waits show_ns.
//   LPR6. An asker for a change hears of its own change only, and kWaiting
//         until the primary has said something of it. One change waits to be
//         relayed, the first that came; who asked for another asks again.
//   LPR7. A connection of a log that this node serves is never one of a claimed
//         replica: a candidate there would be told kClaimed for ever. A log
//         that is added ends those connections, or serves them. None is
//         admitted while a log is added.
// Thread safety: one thread.
// References: protocol P-A7, P-H21; region_claim.h, the other end;
// local_regions.h; docs/design/replication.md.
#ifndef ALPHEUS_RECOVERY_SERVER_LOCAL_PRIMARY_RELAY_H_
#define ALPHEUS_RECOVERY_SERVER_LOCAL_PRIMARY_RELAY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/messages.h"
#include "recovery/server/local_regions.h"
#include "recovery/server/opening_service.h"
#include "recovery/server/peer_connections.h"
#include "recovery/server/served_log.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

// The options of ReplicaServerOptions with these names.
struct LocalPrimaryRelayOptions {
  NodeId node;
  int64_t step_down_timeout_ns = 0;
  int64_t show_ns = 0;
  int64_t silence_ns_max = 0;
  std::function<int64_t()> certificate_end_s = {};
};

class LocalPrimaryRelay {
 public:
  // All must outlive the object.
  LocalPrimaryRelay(PeerConnections& connections, OpeningService& opening,
                    LocalRegions& regions, const Clock& clock,
                    const LocalPrimaryRelayOptions& options)
      : connections_(connections),
        opening_(opening),
        regions_(regions),
        clock_(clock),
        options_(options) {}

  // Returns the ServerHello for a peer of a log that this node does not serve;
  // nothing if the node has no replica. `unserved` is what WhyUnserved said.
  // The local primary may say Claim, and an opener may wait if there is a local
  // primary to notify. Adds no log. Errors: the reason why the peer is
  // rejected.
  absl::StatusOr<std::optional<ServerHello>> ServerHelloFor(
      const Hello& hello, const absl::Status& unserved) const;

  // Replies to a request on a connection of such a log. Requires:
  // connection.claimed has a value. Errors: reasons for which the connection
  // ends.
  absl::StatusOr<MaybeReply> Reply(PeerConnection& connection,
                                   const Message& message);

  // Serves the openers that waited, since this node has the region now. All
  // other connections of the log end and begin again.
  void ServeWaiting(ServedLog& log);
  // Forgets the local primary, if the connection is its. Called when the
  // connection ends.
  void OnEnd(const PeerConnection& connection);

  // Returns the promise of the local primary whose connection this is, or
  // nothing.
  std::optional<quorum::Promise> PromiseOfPrimary(
      const PeerConnection& connection) const;

  // Returns the promise of the log's local primary; epoch 0: none has said
  // Claim.
  quorum::Promise PromiseOfLog(Uuid log_id) const {
    const LocalPrimary* const primary = FindPrimary(log_id);
    return primary == nullptr ? quorum::Promise() : primary->promise;
  }

  // Returns when the wait of an asker is over, in nanoseconds, and why.
  // Requires: it is in kWaiting or kFetching.
  int64_t DueAt(const PeerConnection& asker) const;
  absl::Status WhyTooLate(const PeerConnection& asker) const;

 private:
  using Phase = PeerConnection::Phase;

  struct LocalPrimary {
    fabric::ConnectionId connection;
    quorum::Promise promise;
    std::optional<int64_t> wanted_at;  // when a higher promise was first wanted
    Scrubbed scrubbed;                 // as it said last
    // A scrub was asked for: the primary is to be notified, or was.
    bool is_to_scrub = false;
    bool was_asked_to_scrub = false;
    std::vector<ChangeState> outcomes;      // as it said last; see Note
    std::optional<AskChange> asked_change;  // waits to be relayed (LPR6)
    // The bytes that it is showing now, and the asker.
    std::optional<Fetch> fetch;
    fabric::ConnectionId fetching;
  };

  absl::StatusOr<MaybeReply> OnClaim(PeerConnection& connection,
                                     const Claim& claim);
  absl::StatusOr<MaybeReply> OnPrepare(PeerConnection& connection,
                                       const Prepare& ask);
  absl::StatusOr<MaybeReply> OnScrub(const PeerConnection& connection,
                                     const Scrub& scrub);
  // Replies kWaiting where a process has the region and has not said Claim: it
  // may be opening the next epoch.
  Message OnAskChange(const PeerConnection& connection,
                      const AskChange& asked_change);
  absl::StatusOr<MaybeReply> OnFollow(PeerConnection& connection,
                                      const Follow& follow);
  absl::StatusOr<MaybeReply> OnFetch(PeerConnection& connection,
                                     const Fetch& fetch);
  absl::StatusOr<MaybeReply> OnFetched(PeerConnection& connection,
                                       const Fetched& fetched);
  // Ends the connection with Failed. It is not counted, and nobody is warned.
  MaybeReply DismissUnserved(PeerConnection& connection);

  // Returns nullptr if no local primary has said Claim.
  const LocalPrimary* FindPrimary(Uuid log_id) const;
  // Returns the local primary. Errors: Unavailable (none has said Claim).
  absl::StatusOr<LocalPrimary*> PrimaryOf(Uuid log_id);
  // Returns true if the local primary did not step down in time.
  bool IsStuck(const LocalPrimary& primary) const;
  // Sends the local primary the next request that waits for it (LPR4).
  void RelayNext(Uuid log_id);
  // Returns nothing if the asker is to wait.
  absl::StatusOr<MaybeReply> RelayPromise(PeerConnection& asker);
  // Keeps what a primary said of a change; of the last few changes.
  static void Note(LocalPrimary& primary, const ChangeState& said);
  void RelayChange(LocalPrimary& primary);
  void RelayScrub(LocalPrimary& primary);
  void RelayFetch(Uuid log_id, LocalPrimary& primary);

  PeerConnections& connections_;
  OpeningService& opening_;
  LocalRegions& regions_;
  const Clock& clock_;
  const LocalPrimaryRelayOptions options_;
  std::map<Uuid, LocalPrimary> primaries_;  // by log
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_LOCAL_PRIMARY_RELAY_H_
