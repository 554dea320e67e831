// SPDX-License-Identifier: Apache-2.0
// replicator: makes the records of one log durable on W replicas. It is the
// sink of a log whose backups are reached over a fabric.
//
// Idea: the log reports up to where its ring holds finished records, and what
// its own replica has persisted. The replicator writes the rest to all backups,
// in parallel, each at its own speed, and reports which LSN W replicas have. It
// never waits: several batches are in flight at once, and a caller that waits
// for an LSN polls.
//
// Poll takes what the fabric brought. Events of other connections go to the
// observer, as the adapter may serve more than this log. Poll skips the backups
// if nothing arrived, nothing is to be sent and the last look was recent.
// MemberUpkeep is the observer: at the end of each Poll it lets members join
// again (ReplicaResync), scrubs the own replica, and steps down for a promise.
//
// The parts of replication/, on the way of one batch. Bytes go down,
// acknowledgements come up:
//
//   primary
//     ReplicatedForcer  offers finished records   (log/core/durability/)
//       | Advance, Poll                    ^ durable_lsn
//     Replicator        all backups, the W-th largest LSN
//       | Advance                          ^ acked_lsn
//     PrimarySession    one backup: batches, credits      (session/)
//       | Post                             ^ OnCompletion, OnAck
//     PersistRequester  one Plan: operations, and proofs  (persist/)
//       | Fabric::Post                     ^ Fabric::Poll
//     tcp/: Requester, Outbox   or   verbs/: NativeSends, QueuePair (fabric/)
//   --------------- connection ---------------------------------------------
//   backup
//     tcp/: Responder           or   the adapter itself       (fabric/)
//       | bytes go into the registered ring; then a receive completes
//     ReplicaServer     finds the log of the connection (recovery/server/)
//       | ServedLog::OnCompletion, Step    ^ PostSend of an Ack (wire/)
//     BackupSession     walks, sums, acknowledges         (session/)
//       | Respond
//     PersistResponder  one Plan: Flush, Fence of the medium  (persist/)
//
// Invariants:
//   RPR1. durable_lsn() is at most the W-th largest persisted LSN over the
//         replicas (P-INV-22), and never goes back.
//   RPR2. A backup that is out of sync does not count until it has joined again
//         with another session (P-A5). Records that it made durable before stay
//         durable.
//   RPR3. With fewer than W replicas in sync the replicator fails: status() is
//         an error from then on, and durable_lsn() stays (P-A3.6, P-H20).
//   RPR4. At most a quarter of ack_timeout_ns of the time between two polls
//         counts as a backup's silence. So a primary that was stopped, or was
//         not polled, does not drop its backups for that.
//   RPR5. reuse_limit() is at most the ceiling that each replica in sync has
//         said is in its superline (P-L4, P-A3.7). A backup out of sync holds
//         nothing up.
//   RPR6. A backup that joined and is behind *catches up*: it gets the rest in
//         small batches, which only Poll sends. So a caller that waits for
//         others' acks waits for a few small batches at most. The rate is
//         catch_up_bytes_per_second plus twice the rate of appends, so that it
//         does catch up. Without appends, and once everything is posted, it is
//         treated as any other.
//   RPR7. When a connection breaks, everything that arrived on it is processed
//         first: it may give the reason. Then the backup is dropped. So a post
//         that the adapter refuses because the connection is broken drops
//         nobody. The connection's end does, or a failed completion; without
//         either, ack_timeout_ns of silence.
//   RPR8. With heartbeats, a backup in sync hears something at least once in
//         heartbeat_ns, as long as this host polls. It answers, so that one
//         that has stopped is dropped while nothing is appended, too.
//   RPR9. A confirmation counts a backup in sync once it has acknowledged, in
//         its present session, something that was posted after
//         BeginConfirmation. A completion counts for nothing. The own replica
//         counts as it is: only this process can promise with it. Each backup
//         is sent at most one message for a confirmation, and none if it got a
//         batch anyway (P-A3.8).
// Thread safety: as ReplicationSink; PollDeadline also from any thread. The
// observer must not call the log, except as PrimaryReplica (primary_replica.h).
// Called under: step_mutex_ of the log's ReplicatedForcer; so is the observer.
// May block: Poll for the fabric's lock (fabric.h), for page faults of the own
// ring (primary_session.h), and for the observer's OnPoll (member_upkeep.h).
// The other calls of the sink for the first two.
// References: protocol P-A3.3, P-A3.6, P-A3.8, P-H20 to P-H23; Arcadia §4.1,
// §4.4; replication_sink.h.
#ifndef ALPHEUS_REPLICATION_PRIMARY_REPLICATOR_H_
#define ALPHEUS_REPLICATION_PRIMARY_REPLICATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/core/durability/replication_sink.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"
#include "replication/session/primary_session.h"

namespace alpheus::replication {

class Replicator final : public ReplicationSink {
 public:
  struct Options {
    // W: replicas that must have a record, this host's own included.
    uint32_t write_quorum = 1;
    // N; 0: unknown. A confirmation then counts W replicas, which are never
    // fewer than it needs.
    uint32_t replica_count = 0;
    // False: the primary is remote-only, and no replica of its own counts.
    bool has_local_replica = true;
    // Bytes: a backup with more bytes of the ring unacknowledged is dropped.
    // The ring can't be reused before all backups in sync have it.
    uint64_t lag_bytes_max = uint64_t{64} << 20;
    // Nanoseconds of silence, while records are in flight, after which a backup
    // is dropped. An ack ends silence, and so does a piece of a batch that
    // arrives. If polls are more than a quarter of this apart, silence is
    // noticed later.
    int64_t ack_timeout_ns = 1'000'000'000;
    // Rate at which a joined backup gets what it missed, while records are
    // appended (RPR6). A higher rate ends its lag sooner and slows appends
    // more.
    uint64_t catch_up_bytes_per_second = uint64_t{128} << 20;
    // Nanoseconds without a word to a backup after which it gets one (RPR8); 0:
    // never.
    int64_t heartbeat_ns = 0;
  };

  // Shares the fabric and the polls of the log.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Take events that are of no backup of this log.
    virtual void OnCompletion(const fabric::Completion& completion) = 0;
    virtual void OnConnectionEvent(const fabric::ConnectionEvent& event) = 0;
    // Called at the end of each Poll, and takes what it needs of Poll's time;
    // `polled` is what Poll would return. Returns what Poll returns.
    virtual Polled OnPoll(Polled polled) { return polled; }
  };

  // Requires: all records up to `start` are durable. `fabric`, `clock` and
  // `observer` must outlive the object. Without `observer` events of other
  // connections are dropped.
  Replicator(fabric::Fabric& fabric, const Clock& clock, const Options& options,
             const RingEnd& start, Observer* observer = nullptr);

  // Adds a backup in sync that has all records up to the constructor's `start`.
  // Error messages use `name` for it. Requires: before the first Advance; with
  // this host's own, at most kMembersMax replicas.
  void Add(std::string name, fabric::ConnectionId connection,
           std::unique_ptr<PrimarySession> session);

  // Adds a backup that lacks records, at any time. Its session begins where its
  // records end, and brings the rest. It replaces the backup of that name,
  // which must be out of sync. It may be behind by more than lag_bytes_max
  // until it once was not. Requires: the ring holds everything after its end.
  void Join(std::string name, fabric::ConnectionId connection,
            std::unique_ptr<PrimarySession> session);
  // Returns OK for a backup in sync, NotFound for one that was never added, and
  // else why it is out of sync.
  absl::Status StatusOf(const std::string& name) const;

  // Says that a member is joining, and up to which offset bytes may be assigned
  // while it needs the ring, if it does yet. The log is then not idle.
  void SetJoining(bool is_joining, std::optional<RingOffset> pinned_limit) {
    is_joining_ = is_joining;
    pinned_limit_ = pinned_limit;
  }
  // Sets the time at which the observer needs a Poll although nothing arrives.
  void SetObserverDue(Deadline at) {
    observer_due_ns_.store(at.at_nanos(), std::memory_order_relaxed);
  }

  // Posts the records, and sends them now.
  void Advance(const RingEnd& end) override;
  void LocalPersisted(Lsn lsn) override;
  void AdvanceBounds(const RingBounds& bounds) override;
  void AnnounceDurable() override;
  void BeginConfirmation() override;
  // Also keeps records that are persisted from becoming durable.
  void End(const absl::Status& why) override;
  bool sends_for_waiters() const override {
    return fabric_.sends_for_waiters();
  }
  // Takes what arrived, sends what may be sent, looks at the backups if that is
  // due, and lets the observer work. Ends after a bounded number of rounds.
  Polled Poll() override;
  ReplicationState replication_state() const override;
  // Returns OK, or Aborted with the fate of each backup: the outcome of records
  // beyond durable_lsn() is unknown until an epoch is opened.
  absl::Status status() const override { return status_; }
  bool has_failed() const { return !status_.ok(); }
  void WaitForActivity(Deadline deadline) override {
    fabric_.WaitForActivity(PollDeadline(deadline));
  }
  void Wake() override { fabric_.Wake(); }
  // Returns until when a caller with that deadline may wait for activity: at
  // most ack_timeout_ns / 4, so that all the time is charged (RPR4). A silent
  // backup causes no activity, and the caller may be the only one to notice.
  Deadline PollDeadline(Deadline deadline) const;

  // The parts of Poll. Take a completion, or the end of a connection: each
  // returns true if the connection is of one of the backups.
  bool OnCompletion(const fabric::Completion& completion);
  bool Disconnected(fabric::ConnectionId connection);
  // Posts what waits for credit, and drops backups that lag too far or are
  // silent. Returns true if something was posted.
  bool CheckBackups();
  // Returns the time, in nanoseconds, at which CheckBackups last read the
  // clock.
  int64_t last_poll_ns() const { return last_poll_ns_; }

  // Returns the last end that Advance was given.
  const RingEnd& end() const { return end_; }
  // Returns an end up to which this host's replica has persisted the ring: a
  // lower bound.
  const RingEnd& local_end() const { return local_end_; }
  // Returns what AdvanceBounds was given last; head LSN 0: nothing yet.
  const RingBounds& bounds() const { return bounds_; }
  Lsn durable_lsn() const { return durable_lsn_; }
  // Returns the least ceiling of the replicas in sync; 0 until AdvanceBounds
  // was called.
  RingOffset reuse_limit() const;
  // Returns the lowest LSN that a replica in sync has persisted, or the durable
  // one if that is lower; 0 once it has failed (RSK4).
  Lsn InSyncLsn() const;
  // Returns the W-th largest head of the replicas in sync, or LSN 0 with fewer
  // than W. Never goes back.
  Lsn durable_head_lsn() const { return durable_head_lsn_; }
  // Returns true if a backup in sync lacks records from before it joined
  // (RPR6).
  bool is_catching_up() const;
  // Returns true if all backups in sync have acknowledged the whole ring and
  // the head.
  bool is_idle() const;
  // Returns the number of replicas in sync, the own one included.
  uint32_t in_sync() const;
  // A backup in sync, by the name that it was added with.
  struct SyncedBackup {
    std::string name;
    Platform platform;  // as PrimarySession::platform
  };
  std::vector<SyncedBackup> SyncedBackups() const;
  // Returns the number of batches and messages posted to all backups; grows.
  uint64_t batches() const;

 private:
  struct Backup {
    std::string name;
    fabric::ConnectionId connection;
    std::unique_ptr<PrimarySession> session;
    absl::Status status;    // why it is out of sync
    absl::Status unposted;  // why nothing more could be posted (RPR7)
    // When it was last heard, or had nothing to say; on the clock of
    // listened_ns_.
    int64_t heard_ns = 0;
    bool is_heard = false;     // heard since the last check
    uint64_t lag_excused = 0;  // bytes that a joined backup may lag in excess
    bool is_catching_up = false;
    // Bytes that may be sent now; negative after a larger batch. seen_end and
    // seen_ns: end of the log and time at which that was computed.
    int64_t catch_up_bytes = 0;
    RingOffset seen_end = {};
    int64_t seen_ns = 0;
    // RPR8: when something was last posted to it, and how much by then.
    int64_t said_ns = 0;
    uint64_t said = 0;
    // RPR9: what was posted in this session before the last BeginConfirmation.
    uint64_t unconfirming = 0;
  };

  // Counts of what arrived: completions and connection events.
  struct Arrived {
    size_t completions = 0;
    size_t events = 0;
  };
  // Takes what arrived, and adds to `arrived`. Returns true if there may be
  // more, or if something was posted that must be sent.
  bool DrainSome(Arrived* arrived);
  bool IsPollDue() const;
  // Charges the time since the last call (RPR4); returns the charged total.
  int64_t Listen();
  bool IsIdle(const Backup& backup) const;
  // Notes that there is more to send: the next Poll looks at the backups. Marks
  // idle ones as heard, so that silence counts from then on.
  void NoteNews();

  uint32_t OwnCount() const { return options_.has_local_replica ? 1 : 0; }
  static bool MayPost(const Backup& backup) {
    return backup.status.ok() && backup.unposted.ok();
  }
  Backup* Find(fabric::ConnectionId connection);
  uint64_t LagOf(const Backup& backup) const;
  void Drop(Backup& backup, const absl::Status& why);
  // For a post that failed with `why`: drops the backup, but not yet if
  // something that arrived may say more (RPR7).
  void DropUnlessMoreComes(Backup& backup, const absl::Status& why);
  std::string DescribeLoss() const;
  void Push(Backup& backup);
  void PostReceives(Backup& backup);
  void CatchUp(Backup& backup);
  void Beat(Backup& backup);
  void AskToConfirm(Backup& backup);
  void CountConfirmation();
  void EarnCatchUp(Backup& backup) const;
  void Count();
  void CountRecords();
  void CountHeads();
  std::optional<Lsn> Quorum(Lsn own, Lsn (*of)(const PrimarySession&));

  fabric::Fabric& fabric_;
  const Clock& clock_;
  const Options options_;
  Observer* const observer_;
  const uint32_t confirm_quorum_;  // replicas that a confirmation needs
  // Read without the log's lock.
  std::atomic<int64_t> observer_due_ns_{Deadline().at_nanos()};
  uint32_t busy_polls_ = 0;  // polls in which something was taken
  bool has_news_ = true;     // since the last CheckBackups
  int64_t last_poll_ns_;
  int64_t appended_at_ns_;     // time of the first CheckBackups after an append
  bool has_appended_ = false;  // since the last CheckBackups
  int64_t listened_ns_ = 0;    // time charged in all (RPR4)
  RingEnd end_;
  Lsn local_lsn_;
  RingEnd local_end_;
  RingBounds bounds_{{Lsn(0), RingOffset(0), 0}, RingOffset(0)};
  Lsn durable_lsn_;
  Lsn announced_lsn_;  // last LSN to announce as durable
  bool is_confirming_ = false;
  Lsn confirming_lsn_;  // of end_, as BeginConfirmation found it
  Lsn durable_head_lsn_{0};
  std::vector<Backup> backups_;
  // Scratch of Quorum; a member, as to construct it costs more than to count.
  std::array<quorum::ReplicaProgress, kMembersMax> progress_;
  absl::Status status_;
  bool is_ended_ = false;  // End was called
  bool is_joining_ = false;
  std::optional<RingOffset> pinned_limit_;
  // Scratch of Poll; a member, as to construct it costs more than to poll.
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;  // not taken yet
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PRIMARY_REPLICATOR_H_
