// SPDX-License-Identifier: Apache-2.0
// log: the public face of Alpheus: a write-ahead log in persistent memory.
//
// Many threads reserve a record, fill it in place, complete it and force it.
// All records form one total order of LSNs. After any crash the log comes back
// with every durable record, or with an error (LG1).
//
//   auto log = alpheus::Log::Open({.path = "wal"});
//   auto lsn = (*log)->Append("hello");            // durable when it returns
//
//   auto record = (*log)->Reserve(bytes);           // or step by step
//   Fill(record->payload());
//   auto id = (*log)->Complete(*std::move(record));
//   absl::Status durable = (*log)->Force(*id);
//
// States of a record:
//
//   reserved    its LSN and space are given
//   completed   all bytes are written, its checksum is set
//   persisted   it is inside the local persistence domain
//   durable     it is persisted on W replicas (in local mode: here)
//   recovered   Open found it again
//   cleaned     it is no longer needed
//
// Table 2 of the Arcadia paper maps to: reserve Reserve, copy Copy, complete
// Complete, force Force, append Append, getLSN Reservation::lsn, cleanup
// Cleanup, cleanupAll CleanupAll, begin/end Recovered().
//
// Invariants:
//   LG1. A record whose Force or Append returned OK is recovered by every later
//        Open, with exactly its bytes, unless it was cleaned. This holds while
//        at most W - 1 replicas are lost or damaged (local: none). Most damage
//        beyond that is an error of Open; see RecoveryVerdict::kTornTail.
//   LG2. The records that Open recovers are an unbroken run of LSNs from the
//        head. ABORTED records have an LSN and are not delivered. No other LSN
//        is missing.
//   LG3. No recovered record was invented: each was completed with those bytes.
//   LG4. head_lsn <= durable_lsn + 1 <= next_lsn.
//   LG5. At most ExposedMax() records are reserved and not durable at any time.
// Thread safety: all members of Log may be called by many threads at once,
// except Close and the destructor. Several threads may fill disjoint parts of a
// Reservation; Complete comes after all of them. In a fork's child all calls on
// its parent's log fail with FailedPrecondition, and the destructor leaves the
// log as it is; a log in anonymous memory is copied.
// Durability on error:
// * InvalidArgument, OutOfRange, FailedPrecondition and ResourceExhausted
//   refuse a call. Reserve and Append then assigned no LSN and wrote nothing;
//   Force and WaitDurable leave the record as it was.
// * After any other error of Force or Append the outcome is unknown: the record
//   may be recovered or not.
// * A log fails when its medium fails (Unavailable) or when it loses its epoch
//   (Aborted): fewer than W replicas are left, or another process opens the
//   log. Then every later call fails with that error, which the comments below
//   call the log's failure; open the log again to find out what survived.
//   Aborted has this meaning alone.
// * A change of the members (ChangeMembers) is no failure for a log with a
//   replica of its own (LogOptions::path): it goes on in the next epoch, after
//   a pause for one opening, at most 6 s. Meanwhile Reserve and Append wait,
//   until their deadline, before they reserve; CleanupAll, Close and
//   ConfirmEpoch wait, too.
//   All other calls go on. The change gives no record an unknown outcome, and
//   runs no callback. A reservation that stays open for longer than a second
//   puts the change off. If replicas have promised the next epoch, and none can
//   be opened any more, the log fails (Aborted): then all records that were
//   reserved are durable.
// * Cancelled: nobody waits for the record any more, though the log has not
//   failed. The record may become durable later.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_LOG_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/durability_plan.h"
#include "alpheus/log_epoch.h"
#include "alpheus/log_tail.h"
#include "alpheus/options.h"
#include "alpheus/recovered_range.h"
#include "alpheus/recovery_report.h"
#include "alpheus/replication_status.h"
#include "alpheus/reservation.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/core/durability/persisted_by.h"
#include "log/core/write/appended_record.h"

namespace alpheus {

class Candidate;
class LogEngine;

class Log {
 public:
  // Creates the region that a log lives in, and returns the identity of the new
  // log. Existing data is never touched. Only an empty file, or one of zeros,
  // is used: a killed format may leave one. A process that ends at any moment
  // leaves a whole log under the name, or none. Errors: AlreadyExists;
  // InvalidArgument (size, path); NotFound (folder); ResourceExhausted (file
  // system full; no file is left behind); Unavailable (system error);
  // FailedPrecondition (another process is making the file); PermissionDenied.
  // A cluster's log adds AlreadyExists (a member has a replica of it);
  // Unavailable (a member can't be reached: the message names those that have a
  // replica now); the errors of the cluster file
  // (ReplicationOptions::cluster_file) and of the members' files.
  static absl::StatusOr<Uuid> Format(const FormatOptions& options);

  // Changes the members of a replicated log, or W, or replaces a member's lost
  // replica. An epoch is opened that satisfies the quorums of the old list and
  // of the new one. A process that has the log open, with its own node's
  // replica (LogOptions::path), is asked to open it; its log goes on, after a
  // pause (above). A process whose replica does not stay a member hands over
  // first, as by Candidate::Drain, if it is a candidate and another one stands;
  // then that one is asked. If no process can open the epoch, this call opens
  // it itself. Then a log that is open fails (Aborted, outcome unknown). Open
  // it again, with the new list of members if there is one.
  // On return the new members keep the log; the report names those that are
  // behind, and says whether the log goes on (was_running). Blocking: as Open,
  // and a copy of the log to each joining member.
  // Errors: InvalidArgument (lists or nodes that don't fit; nothing changes);
  // FailedPrecondition (the log's list is not the previous one; the change is
  // too large for one step: the message names the steps; a replica to be
  // replaced still exists; a joining node already has one); Unavailable (too
  // few members could be reached, or the deadline passed: nothing was shown,
  // the change may be half made, and the same call completes it; or the process
  // that has the log open could not make the change, and its log goes on);
  // others as Open.
  static absl::StatusOr<RecoveryReport> ChangeMembers(
      const ChangeMembersOptions& options);

  // Recovers the log and opens a new epoch. On return every recovered record is
  // durable, and report() has the findings.
  // A log of many MiB is read only at its end. Damage before
  // RecoveryReport::read_from_lsn is then an error of Recovered(), not of Open.
  // Blocking: one pass over a few MiB of records, in a cluster also over those
  // that a member lacks, and over all if this process has no replica; then a
  // flush of those that nothing proves persisted. Errors:
  // NotFound (no region; or the log was deleted, or its deletion has begun
  // here); FailedPrecondition (another writer has it; another log than
  // options.expected_log_id); DataLoss (an acknowledged record, or the region's
  // own data, can't be read: the message names LSN, offset, remedy; nothing was
  // changed); ResourceExhausted (epoch table full, see
  // LogOptions::cleanup_through; a file with holes on a full file system);
  // OutOfRange (cleanup_through was never assigned); Unimplemented (format
  // version); InvalidArgument (options); PermissionDenied; Unavailable (system
  // error).
  // A replicated log adds Unavailable (too few members could be reached until
  // open_timeout_ms: nothing was shown, try again); FailedPrecondition (the
  // members changed: another cluster file is needed; or nothing decides which
  // records are durable); the errors of the cluster file.
  static absl::StatusOr<std::unique_ptr<Log>> Open(const LogOptions& options);

  // Closes the log if Close was not called. Aborts the process if a Reservation
  // or a LogTail still exists, since it points into memory that is about to go.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Forces all completed records, writes head and watermark, marks the region
  // as closed cleanly. Later calls fail with FailedPrecondition.
  // Errors: FailedPrecondition (open reservations, or closed already); the
  // log's failure.
  absl::Status Close();

  // Assigns the next LSN and room for `bytes` of payload, 0 to
  // payload_bytes_max(). Lock-free while there is room. At the exposure cap it
  // forces; short of space it advances the head. Then it waits for other
  // threads until the deadline.
  // Errors: InvalidArgument (larger than half the ring); ResourceExhausted
  // (ring full of records that nobody cleaned, after the wait if there is a
  // deadline); DataLoss (ring full, and a header that the head should pass
  // can't be read: a scrub repairs it); FailedPrecondition (only this thread's
  // own open reservations stand in the way; closed); DeadlineExceeded (until
  // then the exposure stayed at its cap, or backups freed no space); the log's
  // failure.
  // After any error no LSN was assigned.
  absl::StatusOr<Reservation> Reserve(size_t bytes, Deadline deadline = {});

  // Copies into the payload at `offset`. May be called many times, in any
  // order, by several threads for disjoint parts.
  // Errors: InvalidArgument (does not fit); FailedPrecondition (not open).
  absl::Status Copy(Reservation& reservation, size_t offset,
                    std::span<const std::byte> bytes);

  // Seals the record: its bytes may no longer change. Not durable yet.
  // Errors: FailedPrecondition (reservation of another log, or not open); the
  // log's failure (outcome unknown; the reservation is not open any more).
  absl::StatusOr<Lsn> Complete(Reservation&& reservation);

  // Makes the record `lsn`, and all before it, durable. Waits for records that
  // are still open. An aborted LSN counts like any other. With
  // options.frequency F > 1 only an LSN divisible by F is forced; others return
  // OK without being durable (Arcadia §4.4).
  // Errors: InvalidArgument (options); OutOfRange (never assigned);
  // FailedPrecondition (an open reservation of this very thread stands before
  // it; closed); DeadlineExceeded, the log's failure (outcome unknown).
  absl::Status Force(Lsn lsn, ForceOptions options = {});

  // Begins a force of `lsn`, for a caller with other work to do meanwhile. On
  // return all completed records up to `lsn` are persisted here and on their
  // way to the backups, or another thread is doing that now. Waits for no ack
  // and for no open record. Force, WaitDurable and OnDurable report the end,
  // and process the acks. OK means only that the log has not failed.
  // Errors: OutOfRange (never assigned); FailedPrecondition (closed); Aborted,
  // Unavailable (failed; outcome unknown).
  absl::Status BeginForce(Lsn lsn);

  // Reserves, copies, completes and forces in one call, with one fence. Several
  // parts are joined in order.
  // Errors: as the four calls, where InvalidArgument, ResourceExhausted,
  // DataLoss and FailedPrecondition mean that nothing was written; Cancelled
  // (under a policy: the record is completed, but this thread's own open
  // reservation keeps it from being forced). Cancelled, DeadlineExceeded, the
  // log's failure: outcome unknown.
  absl::StatusOr<Lsn> Append(std::span<const std::byte> bytes,
                             ForceOptions options = {});
  absl::StatusOr<Lsn> Append(std::string_view text, ForceOptions options = {});
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             ForceOptions options = {});

  // Appends and forces as Append does, and also returns the payload's place in
  // the ring. It may be read there, in place of a copy, on the terms of
  // Reservation::payload(). Errors: as Append.
  absl::StatusOr<AppendedRecord> AppendInRing(
      std::span<const std::span<const std::byte>> parts,
      Deadline deadline = {});

  // Waits until `lsn` is durable without forcing it: another thread does, or
  // the idle timer (LogOptions::idle_force_us). In a callback of OnDurable it
  // does force, because no other thread may be left to do it.
  // Errors: as Force.
  absl::Status WaitDurable(Lsn lsn, Deadline deadline = {});

  // Calls `callback` once:
  // * with OK when `lsn` is durable; if it is already, before this returns;
  // * with the log's failure if it fails first (outcome unknown);
  // * with Cancelled if the log is dropped first (outcome unknown).
  // The callback runs on the thread that made the record durable, or on the
  // log's own; the callbacks of a log run one at a time, lowest LSN first. It
  // should be short. It must not throw and must not close the log; any other
  // call is allowed. A waiting callback does not keep its record from being
  // cleaned.
  // Errors: OutOfRange (never assigned), FailedPrecondition (closed), the log's
  // failure; then the callback is not called.
  absl::Status OnDurable(Lsn lsn,
                         std::function<void(const absl::Status&)> callback);
  // Calls `callback` as OnDurable does, once these replicas have persisted the
  // record and all before it. A record that only kOwnReplica has is not
  // durable. In a local log all three are the same. Errors: as OnDurable;
  // FailedPrecondition (kOwnReplica, and this process has no replica).
  absl::Status OnPersisted(Lsn lsn, PersistedBy by,
                           std::function<void(const absl::Status&)> callback);

  // Confirms that this log's epoch is the latest: at a moment after the call
  // began, no later one was open. On return durable_lsn() has reached each LSN
  // that was durable when the call began, whoever knew of it. So a program that
  // reads the log, or a state that it built from it, after this call misses
  // nothing that was known before it. Only a log that is confirmed can say
  // that: a process that was stopped, or cut off, may have been overtaken
  // without knowing it.
  // Costs a round trip to the backups, which all calls share that come while
  // another one is under way; none in a local log, nor where no epoch can be
  // opened without this process's own replica (W = 1, or W = N, with a path).
  // Errors: FailedPrecondition (closed); DeadlineExceeded (nothing is known);
  // the log's failure.
  absl::Status ConfirmEpoch(Deadline deadline = {});
  // The same for a thread that may not wait. Calls `callback` once:
  // * with OK when the epoch is confirmed; if nobody must be asked, before this
  //   returns;
  // * with the log's failure, if it fails first;
  // * with Cancelled, if the log is dropped first.
  // It runs on a thread and on terms as that of OnDurable. A log ends each
  // confirmation: one that can't reach its backups fails after ack_timeout_ms.
  // Errors: FailedPrecondition (closed), the log's failure; then the callback
  // is not called.
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback);

  // Tells a thread that may not wait when it can reserve again. A change of the
  // members holds reservations until its epoch is open, and the log's own
  // thread holds them for a moment when it writes the end of an idle log;
  // meanwhile Reserve waits for its deadline. Returns false, and calls nothing,
  // if none are held now. Else returns true, and calls `callback` once:
  // * with OK when reservations go on; they may be held again by then;
  // * with the log's failure, if it fails first;
  // * with Cancelled, if the log is dropped first.
  // It runs on a thread and on terms as that of OnDurable. Errors:
  // FailedPrecondition (closed), the log's failure.
  absl::StatusOr<bool> OnResumed(
      std::function<void(const absl::Status&)> callback);

  // Returns the highest LSN that is durable with all before it; 0 if none.
  Lsn durable_lsn() const;
  // Returns the highest LSN that these replicas have persisted with all before
  // it; 0 if none. kQuorum: durable_lsn(). In a local log all three are the
  // same. Requires, for kOwnReplica: this process has a replica.
  Lsn persisted_lsn(PersistedBy by) const;
  // Returns the LSN that the next Reserve assigns.
  Lsn next_lsn() const;
  // Returns the oldest LSN that is not cleaned, or next_lsn().
  Lsn head_lsn() const;
  // Returns the number of records that are reserved and not durable: a crash
  // may lose them.
  uint64_t Exposed() const;
  // Returns the cap on Exposed(): LogOptions::exposure_records_max rounded up.
  uint64_t ExposedMax() const;
  // Returns the largest payload of a record, in bytes.
  size_t payload_bytes_max() const;
  // Returns how many bytes of the ring no record has. A cleaning adds to them.
  uint64_t free_bytes() const;
  // Returns the size of the ring, in bytes. It never changes.
  uint64_t ring_bytes() const;
  // Returns the ring, for programs that read payloads where they lie, on the
  // terms of Reservation::payload(). A payload's offset counts all bytes of
  // the ring since the log began, and is the same at every replica. The byte of
  // offset x lies at x modulo ring_bytes(). Stays where it is until the log is
  // gone.
  std::span<const std::byte> ring() const;

  // Marks a record as no longer needed and reclaims the contiguous cleaned
  // prefix. This is a hint: after a crash a cleaned record may come back, so
  // redo must be idempotent.
  // Errors: OutOfRange (never assigned); NotFound (already cleaned);
  // FailedPrecondition (not durable yet; closed); DataLoss (damaged header);
  // the log's failure.
  absl::Status Cleanup(Lsn lsn);
  // Cleans all records up to and including `lsn`, as Cleanup does. OK if they
  // are cleaned already.
  absl::Status CleanupThrough(Lsn lsn);
  // Cleans everything; on return no earlier record is ever recovered again.
  // LSNs continue. Errors: FailedPrecondition (open reservations; closed);
  // DataLoss (damaged header); the log's failure.
  absl::Status CleanupAll();

  // Calls `visit` for each recovered record that is not cleaned or aborted, in
  // LSN order: exactly the range that Open recovered. Payloads are valid until
  // the record is cleaned. `visit` must not clean records.
  // Errors: DataLoss (a record can't be read any more); Aborted (another
  // process opened the log and took over this one's replica: payloads shown so
  // far may be that process's); any error of `visit`, which ends the iteration.
  [[nodiscard]] absl::Status ForEachRecovered(
      const std::function<absl::Status(const RecoveredRecord&)>& visit) const;
  // Returns the same records as a range; its status() must be read.
  RecoveredRange Recovered() const;

  // Returns OK if payloads that were read in the ring until now were this
  // log's. Call it after reading recovered records or completed reservations in
  // place. Cheap; any thread; also once the log is closed or has failed.
  // Errors: Aborted (as ForEachRecovered).
  absl::Status CheckPayloads() const;

  // Returns a tail over the durable records from LSN `from` on, later ones
  // included; Lsn(0): from the oldest one that is not cleaned. Appending
  // threads pay nothing: only cleaning waits, while the tail copies a record.
  // The tail must not outlive the log, which is checked; it may be used after
  // Close.
  // Errors: OutOfRange (`from` was cleaned: head_lsn() is the oldest; or `from`
  // was never assigned and is not the next LSN).
  absl::StatusOr<std::unique_ptr<LogTail>> Tail(Lsn from);

  // Returns the findings of Open. A change of the members leaves them as they
  // are, `epoch` included.
  const RecoveryReport& report() const;
  // Returns which members keep the log now, by the list of the running epoch.
  // Takes two locks; any thread. Never changes for a local log.
  ReplicationStatus replication_status() const;
  // Returns what makes a record durable now, by the list of the running epoch.
  // Takes two locks; any thread. Has no member in a fork's child.
  DurabilityPlan durability_plan() const;
  // Returns the epochs that own records which are not cleaned, and the running
  // one, oldest first. Not known any more are an epoch that wrote nothing, and
  // one of whose records all were cleaned before a later opening. Any thread.
  // None in a fork's child.
  std::vector<LogEpoch> epochs() const;

 private:
  friend class Candidate;
  friend class LogTail;
  explicit Log(std::unique_ptr<LogEngine> engine);

  std::unique_ptr<LogEngine> engine_;
  std::atomic<uint32_t> open_tails_{0};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_LOG_H_
