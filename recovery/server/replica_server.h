// SPDX-License-Identifier: Apache-2.0
// replica_server: a node's side of opening epochs and of the sessions after
// them, for any number of logs. One primary process has one connection per log.
//
// Idea: a connection goes through phases, and each message belongs to a phase.
// A message out of turn ends its sender's connection, and no other.
//
// Where the cluster has a key, a connection proves it first (handshake.h). Any
// other request before the proof ends the connection. Then ("later": the reply
// comes when the work is done, in the row of the new phase):
//
//   phase            request         reply                  new phase
//   A log that this node serves:
//   kControl         View            Viewed                 kControl
//                    Follow          Followed               kControl
//                    Scrub           Scrubbed               kControl
//                    AskChange       ChangeState            kControl
//                    Fetch           Fetched                kControl
//                    AskCreation     Created                kControl
//                    Format          Formatted              kControl
//                    AskDeletion     DeletionState          kControl
//   kControl,        Remove          DeletionState          kControl
//   kPromised
//   kControl,        Release         Released, or Refused   as before
//   kPromised,       Prepare         later                  kReporting
//   kRepairOpened                    or Refused             as before
//   kReporting       none            Promised               kPromised
//   kPromised        OpenForRepair   RepairOpened           kRepairOpened
//   kPromised        Mark            DeletionState          kControl
//   kRepairOpened    Install         later                  kInstalling
//   kInstalling      none            Installed              kSession
//   kSession         batches         acks                   kSession
//   A log whose region another process of this machine has:
//   kControl         Follow          Followed               kControl
//                    Scrub           Scrubbed               kControl
//                    AskChange       ChangeState            kControl
//                    Prepare         later                  kWaiting
//                                    or Refused             kControl
//                    Fetch           later                  kFetching
//                    Claim           later                  kClaiming
//                    Fetched         later                  kClaiming
//   Either kind of log:
//   kControl         Hear            Heard, perhaps later   kHearing
//                    Instruct        Heard                  kControl
//   kHearing         none            Heard                  kControl
//   kWaiting         none            Refused                kControl
//                                    or none: it is served  kReporting
//   kFetching        none            Fetched                kControl
//   kClaiming        none            Wanted, Scrub, Fetch,
//                                    or AskChange           kControl
//   Both:
//   any              damaged bytes   Changed                kEnding, closed
//   any              anything else   Failed, if possible    kEnding, closed
//
// The *promise owner* of a log is the connection that got its promise from this
// server, from kReporting to kSession. A local primary in kClaiming owns the
// promise of its own replica in the same way (is_promise_owner()).
//
// This class composes the parts, and gives each message to the one that it is
// for:
//
//   peer_connections.h      messages, keys and ends of all connections
//   connection_admission.h  which connections there may be
//   opening_service.h       Prepare, OpenForRepair and Install
//   election_desk.h         what candidates ask for
//   local_primary_relay.h   logs whose region a primary of this machine has
//   slice_scheduler.h       scans and installations of whole rings
//   scrubbing.h             scrubs of the replicas
//
// It keeps the logs, and replies to requests that need no promise itself.
//
// Invariants:
//   RS1. If memory runs out in the work for a log, all connections of that log
//        end. The log is served no more until it is opened again: half-done
//        work is never continued. Other logs are not affected.
//   RS2. Each log has at most one promise owner: at most one of its connections
//        is in a phase from kReporting to kSession, or one is in kClaiming.
//   RS3. Where the fabric proves names, nobody but a node, or an operator in
//        its place, gets the promises of its epochs, takes its replica as a
//        local primary, has it released, or stands as its candidate. So the
//        key of one node opens no log in the name of another, and ends no
//        primary by that.
//   RS4. Where the fabric proves names, nobody but an operator has a replica
//        marked as deleted, or its records removed: the key of one node deletes
//        nothing. A node removes its own records by what it was told by an
//        opening quorum of nodes (deletion_inquiry.h).
//   RS5. A replica that is marked as deleted shows its records to nobody. They
//        are removed only once the deletion is decided (P-D4).
// Thread safety: one thread.
// May block: waits for no peer. Poll, OnCompletion, OnConnectionEvent, AddLog,
// RemoveLog and the destructor may wait for a fence of a replica's medium (on a
// plain file: for the disk), for page faults of its region, for the fabric
// (fabric.h), for LocalRegions (opens files, takes locks) and for LogCreator
// (makes files). All logs of the server wait meanwhile. `note` and `warn` must
// not wait (tools/daemon/message_writer.h).
// References: protocol P-A2, P-A4.2, P-A4.5, P-A7; messages.h;
// docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_SERVER_REPLICA_SERVER_H_
#define ALPHEUS_RECOVERY_SERVER_REPLICA_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/deletion/deletion_inquiry.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/reject_counters.h"
#include "recovery/scrub/scrubbing.h"
#include "recovery/server/connection_admission.h"
#include "recovery/server/election_desk.h"
#include "recovery/server/local_primary_relay.h"
#include "recovery/server/local_regions.h"
#include "recovery/server/opening_service.h"
#include "recovery/server/peer_connections.h"
#include "recovery/server/served_log.h"
#include "recovery/server/slice_scheduler.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::recovery {

struct ReplicaServerOptions {
  Uuid cluster_id;
  NodeId node;
  // Platform of all replicas of this node; ServerHello announces it.
  replication::Platform platform = {};
  // Limits for connections without a promise (ADM1): number of each kind, and
  // nanoseconds of silence. More than 0.
  size_t waiting_connections_max = 32;
  size_t followers_max = 64;
  int64_t silence_ns_max = 30'000'000'000;
  // Limits for connections that have not proved the key: number, and
  // nanoseconds.
  size_t unproved_connections_max = 32;
  int64_t proof_ns_max = 5'000'000'000;
  // Keys that peers prove and that this node proves. Empty: the cluster has no
  // key.
  Credentials credentials = {};
  // Nanoseconds without a batch after which a session's watermark is persisted.
  int64_t idle_ns = 10'000'000;
  // Bytes of a ring that one Poll reads: a millisecond or two of a warm file.
  // More than 0.
  uint64_t slice_bytes = uint64_t{4} << 20;
  // Scrubbing of the replicas, one after the other.
  ScrubbingOptions scrubbing = {};
  // Makes the logs that Format asks for; nullptr: none are made.
  LogCreator* creator = nullptr;
  // Replicas of this node that the server does not serve; must outlive the
  // server. nullptr: no other process has a region, and none gets one.
  LocalRegions* regions = nullptr;
  // Time that an opener waits for the local primary to step down before it is
  // refused, in nanoseconds from the moment at which the primary was notified.
  int64_t step_down_timeout_ns = 200'000'000;
  // Time that an asker waits for bytes of the local primary's ring, in
  // nanoseconds.
  int64_t show_ns = 1'000'000'000;
  // As Followed::certificate_end_s. Not set: 0.
  std::function<int64_t()> certificate_end_s;
  // Returns the name of a log for messages. Not set: its id.
  std::function<std::string(Uuid log_id)> name_of;
  ElectionDeskOptions desk = {};
  DeletionInquiryOptions inquiry = {};
  // Gets one sentence, for an operator's log file, for each promise, each
  // session and the end of each primary.
  std::function<void(const std::string&)> note;
  // Gets one sentence for each connection that ends by an error; a peer that is
  // gone is no error. A repeated rejection of one host for one reason is left
  // out (reject_counters.h).
  std::function<void(const std::string&)> warn;
};

class ReplicaServer {
 public:
  using Counters = ReplicaServerCounters;

  // Clock and fabric must outlive the server. The caller makes the fabric
  // listen; it carries messages of kMessageBytesMax.
  ReplicaServer(fabric::Fabric& fabric, const Clock& clock,
                ReplicaServerOptions options);
  // Closes all connections and persists watermarks.
  ~ReplicaServer();
  ReplicaServer(const ReplicaServer&) = delete;
  ReplicaServer& operator=(const ReplicaServer&) = delete;

  // Serves the log, waiting openers first. Errors: AlreadyExists.
  absl::Status AddLog(std::unique_ptr<ServedLog> log);
  // Ends all connections of the log, then returns it. Errors: NotFound.
  absl::StatusOr<std::unique_ptr<ServedLog>> RemoveLog(Uuid log_id);

  // Returns the logs whose medium failed. They make no more promises. Remove
  // each, and add it again once it is opened again.
  std::vector<Uuid> LogsWithFailedMedium() const;
  // Returns the logs whose work ran out of memory, or failed without a status.
  // Their connections have ended, and their objects may be half done. Remove
  // each, and add it again once it is opened again.
  std::vector<Uuid> StarvedLogs() const;

  // Takes what the fabric's Poll brought. Returns false if it belongs to no
  // connection of this server; every request to connect belongs to it. Where
  // memory runs out, the log that needed it ends (RS1).
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Persists and acknowledges what arrived, does a slice of work that takes
  // long (slice_scheduler.h) and of scrubbing, and checks the clock. Call it
  // after completions were taken, and at NextPoll.
  void Poll();
  // Counts and warns of a peer that the fabric ended before this server heard
  // of it, as if the server had rejected it. Requires: `why` has a reason
  // (reject_counters.h).
  void NoteRejected(const std::string& peer, const absl::Status& why);

  // Returns when Poll has something to do by itself; not set: never.
  Deadline NextPoll() const;

  // Takes credentials, numbers of places and scrubbing of these options.
  // Connections keep what they have proved, and their places.
  void Reconfigure(const ReplicaServerOptions& options);

  // A replica that this server serves, as it is now.
  struct ReplicaState {
    Uuid log_id;
    Followed followed;
    Scrubbed scrubbed;
  };
  // Returns all of them. Reads their watermarks.
  std::vector<ReplicaState> replicas() const;

  const Counters& counters() const { return connections_.counters(); }
  const RejectCounters& rejects() const { return connections_.rejects(); }
  size_t connection_count() const { return connections_.all().size(); }

 private:
  using Phase = PeerConnection::Phase;

  // Runs `work`. Where memory runs out, ends the log's connections (RS1).
  template <class Work>
  void Guard(fabric::ConnectionId id, const Work& work);
  void Starve(fabric::ConnectionId id, ServedLog* log, const absl::Status& why);
  bool Dispatch(const fabric::ConnectionEvent& event);
  bool Dispatch(const fabric::Completion& completion);

  // Connections.
  ConnectionAdmissionOptions AdmissionOptions() const;
  void OnRequested(const fabric::ConnectionEvent& event);
  // Returns the connection for a request, with its log and its slots.
  absl::StatusOr<PeerConnection> Admit(const fabric::ConnectionEvent& event);
  ServerHello ServerHelloFor(const PeerConnection& connection) const;
  void EndGone(const PeerConnection& connection);

  // Requests.
  void Serve(PeerConnection& connection, std::span<const std::byte> request);
  absl::StatusOr<MaybeReply> Reply(PeerConnection& connection,
                                   const Message& message);
  absl::Status CheckName(const PeerConnection& connection,
                         const Message& message) const;
  absl::StatusOr<MaybeReply> OnHandshake(PeerConnection& connection,
                                         const Message& message);
  static absl::StatusOr<Message> OnAskCreation(
      const PeerConnection& connection);
  absl::Status CheckReplaceable(const ServedLog& log,
                                const Format& format) const;
  absl::StatusOr<Message> OnFormat(PeerConnection& connection,
                                   const Format& format);
  // Errors: NotFound (this node has no replica of the connection's log).
  absl::Status CheckKept(const PeerConnection& connection) const;
  absl::StatusOr<Message> OnView(PeerConnection& connection);
  absl::StatusOr<Message> OnFollow(const PeerConnection& connection,
                                   const Follow& follow) const;
  absl::StatusOr<Message> OnRelease(const PeerConnection& connection,
                                    const Release& release);
  absl::StatusOr<Message> OnScrub(const PeerConnection& connection,
                                  const Scrub& scrub);
  absl::StatusOr<Message> OnAskChange(const PeerConnection& connection,
                                      const AskChange& asked_change) const;
  static absl::StatusOr<Message> OnAskDeletion(
      const PeerConnection& connection);
  absl::StatusOr<Message> OnRemove(PeerConnection& connection);
  // Removes the records of a log whose deletion is decided (P-D4). `asker`
  // stays; nullptr: nobody asked.
  absl::StatusOr<DeletionState> RemoveRecords(Uuid log_id,
                                              PeerConnection* asker);
  // Asks other nodes whether logs were deleted while this one was away, whether
  // or not a primary has them open (P-D5, DLI2 of deletion_inquiry.h).
  void InquireOfDeletions();
  static absl::StatusOr<Message> OnFetch(const PeerConnection& connection,
                                         const Fetch& fetch);

  // Time.
  // Returns true if the log's ring belongs to an owner that has no session yet.
  bool IsBeingOpened(Uuid log_id) const;
  // Returns true if a connection owns the log's promise.
  bool HasOwner(Uuid log_id) const;
  void StepSessions();
  void RunSlice();
  // Persists the session's watermark once the session is idle.
  void PersistIdleSession(PeerConnection& connection, int64_t now);
  static bool IsWaiting(const PeerConnection& connection);
  std::optional<int64_t> DueAt(const PeerConnection& connection) const;
  void EndLate(PeerConnection& connection);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  ReplicaServerOptions options_;
  LocalRegions no_regions_;
  LocalRegions& regions_;
  std::map<Uuid, std::unique_ptr<ServedLog>> logs_;
  std::set<const ServedLog*> starved_;  // of `logs_`
  bool all_starved_ = false;            // there was no memory to say which
  std::set<Uuid> released_;  // logs given to a local process; until removed
  Scrubbing scrubbing_;
  PeerConnections connections_;
  OpeningService opening_;
  LocalPrimaryRelay relay_;
  ElectionDesk desk_;
  ConnectionAdmission admission_;
  SliceScheduler slices_;
  DeletionInquiry inquiry_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_REPLICA_SERVER_H_
