// SPDX-License-Identifier: Apache-2.0
// replicator: makes the records of one log durable on W replicas.
//
// Idea: the log says up to where its ring holds finished records, and what its
// own replica has persisted; the replicator has all backups write the rest, in
// parallel and each at its own speed, and tells which LSN W replicas have.
// Waiting is nobody's business here: several batches are under way at once, and
// whoever waits for an LSN looks at durable_lsn().
//
// Invariants:
//   RPR1. durable_lsn() is at most the W-th largest persisted LSN over the
//         replicas (P-INV-22), and never goes back.
//   RPR2. A backup that is out of sync counts no more, until it has joined
//         again with another session (P-A5); what was durable with it stays
//         durable.
//   RPR3. With fewer than W replicas in sync the replicator is poisoned:
//         status() is not OK any more, durable_lsn() stays (P-A3.6, P-H20).
//   RPR4. Silence is what a backup could have broken: of the time between two
//         looks a quarter of silence_ns counts at most. A primary that was
//         stopped, or was not polled, gives up nobody for that.
//   RPR5. reuse_head() is at most the head that each replica in sync has said
//         is in its superline (P-L4). A backup out of sync holds nothing up.
//   RPR6. A backup that joined and is behind gets the rest in small batches,
//         and those with Poll only: what an ack makes room for does not go out
//         while others' acks are taken, so that whoever waits for these waits
//         for a few small batches at most. Nor is more sent than
//         catch_up_bytes_per_second, and twice what is appended meanwhile: it
//         is behind for a while, and not for ever. While nobody appends, and
//         once all is posted, it is as any other.
//   RPR7. A backup whose connection is broken is given up when what arrived
//         before has been taken: it may say why the connection ended.
// Thread safety: one thread.
// References: protocol P-A3.3, P-A3.6, P-H20 to P-H22; Arcadia §4.1, §4.4.
#ifndef ALPHEUS_REPLICATION_REPLICATOR_H_
#define ALPHEUS_REPLICATION_REPLICATOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "quorum/quorum.h"
#include "replication/fabric/fabric.h"
#include "replication/replica_session.h"

namespace alpheus {

class Replicator {
 public:
  struct Options {
    // W: replicas that must have a record, this host's own included.
    uint32_t write_quorum = 1;
    // Else the primary is remote-only: no replica of its own counts.
    bool has_local_replica = true;
    // A backup further behind, in bytes of the ring, is given up. The ring
    // can't be reused before all in-sync backups have it.
    uint64_t lag_bytes_max = uint64_t{64} << 20;
    // So is one with records under way of which nothing is heard for so long:
    // no ack, and no piece of a batch that arrives. Noticed late if looks are
    // further apart than a quarter of it.
    int64_t silence_ns = 1'000'000'000;
    // What a backup that joins gets of what it missed, while records are
    // appended (RPR6): the more, the sooner it is no longer behind, and the
    // more those who append pay.
    uint64_t catch_up_bytes_per_second = uint64_t{128} << 20;
  };

  // All records up to `start` are durable.
  Replicator(Fabric& fabric, const Clock& clock, const Options& options,
             const RingEnd& start);

  // A backup in sync that has all up to the constructor's `start`, known to
  // errors as `name`. Requires: before the first Advance; with this host's own,
  // at most kMembersMax replicas.
  void Add(std::string name, ConnectionId connection,
           std::unique_ptr<ReplicaSession> session);

  // The same for one that lacks records, at any time: its session begins where
  // what it has ends, and brings the rest. It takes the place of the one of
  // that name, which must be out of sync. It may be behind by more than
  // lag_bytes_max, until it once was not. Requires: the ring holds all behind
  // its end.
  void Join(std::string name, ConnectionId connection,
            std::unique_ptr<ReplicaSession> session);
  // OK: in sync. NotFound: never added. Else why it is out of sync.
  absl::Status StatusOf(const std::string& name) const;

  // The ring holds finished records up to `end`. Requires: does not go back.
  void Advance(const RingEnd& end);

  // This host's replica has persisted all up to `lsn`: after its fence, not
  // before (P-H22). Requires: has_local_replica.
  void LocalPersisted(Lsn lsn);

  // The log's head is here, in this host's own superline. Requires: does not go
  // back.
  void AdvanceHead(const LogPosition& head);

  // The primary ends by itself: closes all backups. Nothing becomes durable any
  // more, whoever had persisted it. Requires: !why.ok().
  void End(const absl::Status& why);

  // Nothing is to follow soon: tells the backups what is durable now.
  void TellDurable();

  // True if the completion's connection is of a backup of this replicator.
  bool Take(const Completion& completion);
  // The peer broke the connection. True as above.
  bool Disconnected(ConnectionId connection);

  // Posts what waits for credit, gives up who is too far behind or silent.
  // True if something was posted.
  bool Poll();
  // When it was last looked at the clock.
  int64_t looked_at_ns() const { return looked_at_ns_; }

  Lsn durable_lsn() const { return durable_lsn_; }
  // 0 until each backup in sync has published one.
  RingOffset reuse_head() const;
  // The W-th largest head of the replicas in sync; LSN 0 with fewer than W.
  // Never goes back.
  Lsn durable_head_lsn() const { return durable_head_lsn_; }
  // A backup in sync lacks records from before it joined (RPR6).
  bool is_catching_up() const;
  // All backups in sync have acknowledged all of the ring, and the head.
  bool is_idle() const;
  // OK, or Aborted with what became of each backup: the outcome of records
  // beyond durable_lsn() is unknown until an epoch is opened.
  const absl::Status& status() const { return status_; }
  uint32_t in_sync() const;
  // That were posted to backups, messages among them; grows.
  uint64_t batches() const;

 private:
  struct Backup {
    std::string name;
    ConnectionId connection;
    std::unique_ptr<ReplicaSession> session;
    absl::Status status;       // why it is out of sync
    absl::Status unposted;     // why nothing more could be posted (RPR7)
    int64_t heard_ns = 0;      // or had nothing to say; in listened_ns_
    bool is_heard = false;     // since the last Poll, which notes when
    uint64_t lag_excused = 0;  // bytes, of one that joined
    bool is_catching_up = false;
    // Bytes that may be sent to it now, and where the log was, and when, as of
    // which that holds; less than 0 after a batch that was larger.
    int64_t catch_up_bytes = 0;
    RingOffset seen_end = {};
    int64_t seen_ns = 0;
  };

  // Counts the time since the last call; returns how much has been counted.
  int64_t Listen();
  bool IsIdle(const Backup& backup) const;
  // Before there is more to say: silence counts from the next Poll on.
  void NoteIdle();

  static bool MayPost(const Backup& backup) {
    return backup.status.ok() && backup.unposted.ok();
  }
  Backup* Find(ConnectionId connection);
  uint64_t LagOf(const Backup& backup) const;
  void GiveUp(Backup& backup, const absl::Status& why);
  void GiveUpUnposted(Backup& backup, const absl::Status& why);
  std::string DescribeLoss() const;
  void Push(Backup& backup);
  void PostReceives(Backup& backup);
  void CatchUp(Backup& backup);
  void EarnCatchUp(Backup& backup) const;
  void Count();
  void CountRecords();
  void CountHeads();
  std::optional<Lsn> Quorum(Lsn own, Lsn (*of)(const ReplicaSession&));

  Fabric& fabric_;
  const Clock& clock_;
  const Options options_;
  int64_t looked_at_ns_;
  int64_t appended_at_ns_;     // as of the Poll behind it
  bool has_appended_ = false;  // since the last Poll
  int64_t listened_ns_ = 0;    // RPR4
  RingEnd end_;
  Lsn local_lsn_;
  LogPosition head_{Lsn(0), RingOffset(0), 0};  // LSN 0: not told yet
  Lsn durable_lsn_;
  Lsn told_lsn_;  // that backups are to know to be durable
  Lsn durable_head_lsn_{0};
  std::vector<Backup> backups_;
  // Of the last Quorum; here, as to make them anew costs more than to count.
  std::array<ReplicaProgress, kMembersMax> progress_;
  absl::Status status_;
  bool is_ended_ = false;  // by End
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_REPLICATOR_H_
