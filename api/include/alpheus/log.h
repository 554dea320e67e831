// SPDX-License-Identifier: Apache-2.0
// log: the public face of Alpheus: a write-ahead log in persistent memory.
//
// Many threads reserve a record, fill it in place, complete it and force it;
// all records stand in one total order of LSNs. After any crash the log comes
// back with every durable record, or with an error, never silently shorter.
//
//   auto log = alpheus::Log::Open({.path = "wal"});
//   auto lsn = (*log)->Append("hello");            // durable when it returns
//
//   auto record = (*log)->Reserve(bytes);           // or step by step
//   Fill(record->payload());
//   auto id = (*log)->Complete(*std::move(record));
//   absl::Status durable = (*log)->Force(*id);
//
// States of a record: reserved (space and LSN given), completed (all bytes
// written, checksum set), persisted (inside the local persistence domain),
// durable (persisted on W replicas; in local mode, here), recovered (found
// again by Open), cleaned (no longer needed). Table 2 of the Arcadia paper maps
// to: reserve Reserve, copy Copy, complete Complete, force Force, append
// Append, getLSN Reservation::lsn, cleanup Cleanup, cleanupAll CleanupAll,
// begin/end Recovered().
//
// Invariants:
//   LG1. A record whose Force or Append returned OK is recovered by every later
//        Open, with exactly its bytes, unless it was cleaned.
//   LG2. What Open recovers is an unbroken run of LSNs from the head; ABORTED
//        records leave gaps in what is delivered, never holes.
//   LG3. No recovered record was invented: each was completed with those bytes.
//   LG4. head_lsn <= durable_lsn + 1 <= next_lsn.
//   LG5. At most LogOptions::exposure_records_max records are reserved and not
//        durable at any time.
// Thread safety: all members of Log may be called by many threads at once,
// except Close and the destructor. A Reservation may be used by several threads
// that fill disjoint parts; Complete comes after all of them. In a fork's child
// all calls on its parent's log fail with FailedPrecondition, and the
// destructor leaves the log as it is; a log in anonymous memory is copied.
// Durability on error: InvalidArgument, OutOfRange, FailedPrecondition and
// ResourceExhausted refuse a call. Reserve and Append then gave no LSN and
// wrote nothing; Force and WaitDurable leave the record as it was. After Force
// or Append failed with another code, the outcome is unknown: the record may be
// recovered or not. After a failure of the medium, or when fewer than W
// replicas of a replicated log are left, or another process opened it (both
// Aborted), every later call fails; open the log again to find out what
// survived.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log_tail.h"
#include "alpheus/options.h"
#include "alpheus/recovered_range.h"
#include "alpheus/recovery_report.h"
#include "alpheus/replication_status.h"
#include "alpheus/reservation.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/core/write/appended_record.h"

namespace alpheus {

class LogEngine;

class Log {
 public:
  // Creates the region that a log lives in. Nothing that exists is touched, but
  // a file without bytes or of zeros, which may be what a format that was
  // killed has left. The name leads to a whole log or to none, whenever the
  // process ends. Returns the identity of the new log. Errors: AlreadyExists;
  // InvalidArgument (size, path); NotFound (folder); ResourceExhausted (file
  // system full; no file is left behind); Unavailable (system error);
  // FailedPrecondition (another process is making the file).
  static absl::StatusOr<Uuid> Format(const FormatOptions& options);

  // Changes the members of a replicated log, W, or a member's lost replica, by
  // opening an epoch that satisfies the quorums of before and after. Whoever
  // has the log open then finds that it failed, outcome unknown (Aborted), and
  // opens it again, by the new list of members if there is one.
  // On return the log is kept by the new members; the report tells who of them
  // is behind. Blocking: as Open, and a copy of the log to each newcomer.
  // Errors: InvalidArgument (lists or nodes that don't fit; nothing changes);
  // FailedPrecondition (the log has another list than the previous one; a
  // change that is too large to be made at once: message names the steps; a
  // replica that is to be replaced is there; a node that joins has one);
  // Unavailable (too few members could be reached or the deadline passed:
  // nothing was shown, the change may be half made, and is made again by the
  // same call); others as Open.
  static absl::StatusOr<RecoveryReport> ChangeMembers(
      const ChangeMembersOptions& options);

  // Recovers the log and opens a new epoch. Takes the region's lock.
  // On return every recovered record is durable and report() tells what was
  // found. Blocking: one pass over the records, then a flush of those that
  // nothing proves persisted.
  // Errors: NotFound; FailedPrecondition (another writer has it; another log
  // than options.expected_log_id); DataLoss (an acknowledged record, or the
  // region's own data, can't be read: message names LSN, offset, remedy;
  // nothing was changed); ResourceExhausted (epoch table full, see
  // LogOptions::cleanup_through; a file with holes on a full file system);
  // OutOfRange (cleanup_through was never given);
  // Unimplemented (format version, replicated log); InvalidArgument (options);
  // Unavailable (system error).
  static absl::StatusOr<std::unique_ptr<Log>> Open(const LogOptions& options);

  // Closes if Close was not called. Aborts the process if a Reservation or a
  // LogTail is still there: it points into memory that is about to go.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Forces everything completed, writes head and watermark, marks the region
  // as closed cleanly. Later calls fail with FailedPrecondition.
  // Errors: FailedPrecondition (open reservations, or closed already);
  // Unavailable (medium).
  absl::Status Close();

  // Gives the next LSN and room for `bytes` of payload, 0 to
  // payload_bytes_max(). Lock-free while there is room. At the exposure cap it
  // forces, short of space it advances the head, and waits for other threads
  // until the deadline.
  // Errors: InvalidArgument (larger than half the ring); ResourceExhausted
  // (ring full of records that nobody cleaned; with a deadline it waited for
  // that); FailedPrecondition (only this thread's own open reservations stand
  // in the way; closed); DeadlineExceeded; Unavailable (log failed). After any
  // of them no LSN was given.
  absl::StatusOr<Reservation> Reserve(size_t bytes, Deadline deadline = {});

  // Copies into the payload at `offset`. May be called many times, in any
  // order, by several threads for disjoint parts.
  // Errors: InvalidArgument (does not fit); FailedPrecondition (not open).
  absl::Status Copy(Reservation& reservation, size_t offset,
                    std::span<const std::byte> bytes);

  // Seals the record: its bytes may no longer change. Not durable yet.
  // Errors: FailedPrecondition (reservation of another log, or not open).
  absl::StatusOr<Lsn> Complete(Reservation&& reservation);

  // Makes the record `lsn`, and all before it, durable. Waits for those that
  // are still open. An aborted LSN counts like any other. With
  // options.frequency F > 1 only an LSN divisible by F is forced; others
  // return OK without being durable (Arcadia §4.4).
  // Errors: OutOfRange (never given); FailedPrecondition (an open reservation
  // of this very thread stands before it; closed); DeadlineExceeded and
  // Unavailable (outcome unknown).
  absl::Status Force(Lsn lsn, ForceOptions options = {});

  // Begins what Force does, for a caller that has other work until it waits:
  // what is completed of the records up to `lsn` is on its way to the backups
  // when this returns, and persisted here, or another thread is just seeing to
  // that. It waits for no answer and no record that is open: Force, WaitDurable
  // or OnDurable tell of the end, and take what the backups answer. OK: the log
  // has not failed, no more.
  // Errors: OutOfRange (never given); FailedPrecondition (closed); Aborted,
  // Unavailable (failed; outcome unknown).
  absl::Status BeginForce(Lsn lsn);

  // Reserve, Copy, Complete and Force in one call, with one fence. Several
  // parts are joined in order.
  // Errors: as the four calls, where InvalidArgument, ResourceExhausted and
  // FailedPrecondition mean that nothing was written; Aborted (under a policy:
  // the record is completed, but this thread's own open reservation keeps it
  // from being forced). DeadlineExceeded, Unavailable: outcome unknown.
  absl::StatusOr<Lsn> Append(std::span<const std::byte> bytes,
                             ForceOptions options = {});
  absl::StatusOr<Lsn> Append(std::string_view text, ForceOptions options = {});
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             ForceOptions options = {});

  // Appends and forces as Append does, and also tells where in the ring the
  // payload is: to be read, on the terms of Reservation::payload(), in place
  // of a copy of one's own. Errors: as Append.
  absl::StatusOr<AppendedRecord> AppendInRing(
      std::span<const std::span<const std::byte>> parts,
      Deadline deadline = {});

  // Waits until `lsn` is durable without forcing it: another thread does, or
  // the idle timer (LogOptions::idle_force_us). In a callback of OnDurable it
  // forces, as the thread that runs it may be the only one that would.
  // Errors: as Force.
  absl::Status WaitDurable(Lsn lsn, Deadline deadline = {});

  // Calls `callback` once: with OK as soon as `lsn` is durable, before this
  // returns if it is already; with the log's failure if it fails before
  // (outcome unknown); with Aborted if the log is dropped before. It runs on
  // the thread that made the record durable, or on the log's own; the
  // callbacks of a log run one at a time, lowest LSN first. So it should be
  // short, must not throw, must not close the log, and may call anything else
  // of it. Until it has run it keeps nothing from being cleaned.
  // Errors: OutOfRange (never given), FailedPrecondition (closed), Unavailable
  // (failed); then it is not called.
  absl::Status OnDurable(Lsn lsn,
                         std::function<void(const absl::Status&)> callback);

  // Highest LSN such that it and all before it are durable; 0 if none.
  Lsn durable_lsn() const;
  // The LSN that the next Reserve gives.
  Lsn next_lsn() const;
  // The oldest LSN that is not cleaned, or next_lsn().
  Lsn head_lsn() const;
  // Number of records given out that are not durable: what a crash may take.
  uint64_t Exposed() const;
  // What Exposed() never exceeds: LogOptions::exposure_records_max rounded up.
  uint64_t ExposedMax() const;
  // Largest payload of a record, in bytes.
  size_t payload_bytes_max() const;

  // Marks a record as no longer needed and reclaims the contiguous cleaned
  // prefix. A hint: after a crash a cleaned record may come back, so redo must
  // be idempotent.
  // Errors: OutOfRange (never given); NotFound (already cleaned);
  // FailedPrecondition (not durable yet; closed); DataLoss (damaged header).
  absl::Status Cleanup(Lsn lsn);
  // The same for all records up to and including `lsn`. OK if they are
  // cleaned already.
  absl::Status CleanupThrough(Lsn lsn);
  // Cleans everything; on return no earlier record is ever recovered again.
  // LSNs go on. Errors: FailedPrecondition (open reservations).
  absl::Status CleanupAll();

  // Calls `visit` for each recovered record that is not cleaned or aborted, in
  // LSN order: exactly the range that Open recovered. Payloads are valid until
  // the record is cleaned. `visit` must not clean records.
  // Errors: DataLoss (a record can't be read any more); Aborted (another
  // process opened the log and has this one's replica: what was shown, and is
  // still looked at, may be that one's); whatever `visit` returns, which ends
  // the iteration.
  [[nodiscard]] absl::Status ForEachRecovered(
      const std::function<absl::Status(const RecoveredRecord&)>& visit) const;
  // The same as a range; its status() must be read.
  RecoveredRange Recovered() const;

  // To be asked after payloads were read where they lie in the ring, those of
  // recovered records and of reservations that were completed: OK if what was
  // read is this log's. Cheap; any thread; also once the log is closed or has
  // failed.
  // Errors: Aborted (as ForEachRecovered).
  absl::Status CheckPayloads() const;

  // Follows the durable records from LSN `from` on, those that come later too;
  // Lsn(0): from the oldest one that is not cleaned. Costs those who append
  // nothing: a record that it copies makes only cleaning wait. The tail must
  // not outlive the log, which is checked; it may go on after Close.
  // Errors: OutOfRange (`from` was cleaned: head_lsn() is the oldest; or was
  // never given and is not the next one).
  absl::StatusOr<std::unique_ptr<LogTail>> Tail(Lsn from);

  // What Open found.
  const RecoveryReport& report() const;
  // Who keeps the log now. Cheap, but for a lock; any thread. Of a local log it
  // never changes.
  ReplicationStatus replication_status() const;

 private:
  friend class LogTail;
  explicit Log(std::unique_ptr<LogEngine> engine);

  std::unique_ptr<LogEngine> engine_;
  std::atomic<uint32_t> open_tails_{0};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_LOG_H_
