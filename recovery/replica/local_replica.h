// SPDX-License-Identifier: Apache-2.0
// local_replica: one replica of a log, as its own process holds it while epochs
// are opened: it promises, reports its state, is repaired, and installs.
//
// Idea: protocol P-A4 as one replica sees it, without the network. A backup
// calls it for messages that arrive, a primary for its own replica. It is the
// only writer of the region's superline and epoch table and, outside a session,
// of its watermark (P-S4). Others write the ring in between; nothing of that
// counts before Install has read it all.
//
// Invariants:
//   REP1. A promise is on media before AcceptPromise returns, and never goes
//         back (PRO1, PRO2 of promise.h).
//   REP2. Everything that a state report says this replica has is persisted
//         before TakeStateReport returns it (P-H7).
//   REP3. log_epoch = e is on media only when this replica has read every
//         record of the installed log, with payload and chain, and persisted it
//         (P-H3, P-INV-3): now, or before it stored a watermark that names it.
//   REP4. `repairing` is cleared only together with REP3 (P-H12).
//   REP5. The region is read again before each change, so that the copy that is
//         overwritten first is never the only good one (INS1 of installer.h).
//         After the change both copies of superline and table are equal (P-S2).
//   REP6. A failure of the medium leaves open what is on it. After one, this
//         object says and changes nothing any more.
//   REP7. The configuration changes only together with REP3, to one that names
//         this replica and is no older (P-A5, P-H18).
//   REP8. A repair that may write before the proven place begins only once no
//         watermark on the medium has a place. So what it writes is read and
//         persisted by the installation that ends it, in whatever process that
//         is (P-A4.5).
// Persistence, crash states of Install in order; each reopens as before
// Install, or, from the superline on, as after it:
//   1. installed records flushed
//   2. clean-close word cleared (by the promise already)
//   3. epoch table with the new entry, in the copy that no superline names
//   4. superline: log_epoch = e, head, configuration, names the new table
//                                                              <- commit
//   5. epoch table in the other copy
//   6. watermark lines of epoch e, one after the other
//   7. damaged PADs written again: under the new table nothing valid lies
//      there; until then scans pass over them (RC2 of record_cursor.h)
// AcceptPromise, BeginRepair, RaiseCeiling and PublishBounds are one superline
// update each. RaiseCeiling may write both watermark lines before it, one after
// the other: they prove what they proved, and have no place.
// AcceptPromise first repairs what a cut left of an earlier update.
//
// The views of a replica, each for one kind of user, in headers of their names:
//   view             whose replica                       used for
//   LocalReplica     its own process's                   everything
//   OpenersReplica   the opening process's own           an opening
//                    (LocalOpenersReplica has one)
//   PrimaryReplica   a running primary's own             upkeep beside the log
//   ServedLog        a node's (ServedReplica has one)    peers' requests
//   ScrubbedReplica  a node's, or a primary's own        scrubbing
//   FollowedReplica  another process's, over the fabric  a tail
//   RemoteRegion     another process's, over the fabric  reading an image
// ServedLog and OwnScrub are ScrubbedReplicas.
//
// Thread safety: one thread, whose process holds the region's lock.
// References: protocol P-A2, P-A4, P-A6; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_REPLICA_LOCAL_REPLICA_H_
#define ALPHEUS_RECOVERY_REPLICA_LOCAL_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/lsn_index.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/ring_log.h"
#include "log/core/space/ceiling.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/pmem/persistence.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/state_report.h"
#include "recovery/replica/log_reading.h"
#include "recovery/replica/state_report_scan.h"

namespace alpheus::recovery {

struct LocalReplicaOptions {
  std::string name;  // name of the region, for messages
  std::optional<Uuid> expected_cluster_id = std::nullopt;
  std::optional<Uuid> expected_log_id = std::nullopt;
  std::optional<NodeId> expected_node = std::nullopt;
  bool suspect = false;  // the medium may have lost bytes; see StateReport
  // Bytes between the head and the proven place that reports and installations
  // read all the same.
  uint64_t read_whole_bytes_max = kReadWholeBytesMax;
};

template <Persistence P>
class LocalReplica {
 public:
  // Reads superline, table and watermarks, and persists what it read: a process
  // that was killed may have left stores in the cache (P-A4.2). The ring is
  // persisted by the calls that say something of it. Changes no byte, except
  // that a suspect replica's superline says `repairing` afterwards. Errors: as
  // ReadRegionState; FailedPrecondition (another cluster or log, the replica of
  // another node); the medium's.
  static absl::StatusOr<std::unique_ptr<LocalReplica>> Open(
      P& pmem, std::span<std::byte> region, const LocalReplicaOptions& options);

  const std::string& name() const { return options_.name; }
  std::span<std::byte> region() const { return region_; }
  const Superline& superline() const { return state_.superline; }
  const EpochTable& table() const { return state_.table; }
  Ring ring() const { return RingOf(region_, state_.superline); }
  // Returns true if the configuration names another incarnation (P-A4).
  bool is_blank() const { return IsBlank(state_.superline); }

  // All calls below read the region first and have the errors of
  // ReadRegionState, too. After an error of the medium, and after StartOfLog,
  // they return FailedPrecondition: open the region again.

  // Promises, if the rule of promise.h allows it. On OK the promise is
  // persisted, in both copies, and the verdict is kNew or kAgain. Before the
  // caller reports it, it must destroy all earlier sessions with their keys,
  // those of the same epoch too. May block: for fences. Errors: as
  // AnswerPromise; InvalidArgument (an epoch that no later one could be above);
  // NotFound (the replica is marked as deleted); the medium's.
  absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request);

  // Two calls read the whole ring, in slices, between which other logs are
  // served. Start one, then call Continue until it is done. Any call that
  // changes the replica ends the running one, and so does a repeated promise; a
  // refused promise does not.

  // Persists what is visible, scans and reports. Only the part of the ring that
  // the report reads is flushed and scanned: up to the ceiling, from the proven
  // place, or from the head if `from_head` (P-A3.7). Requires: fenced, as
  // above, until TakeStateReport. Errors: the medium's.
  absl::Status StartStateReport(bool from_head);
  // Returns the report. Call it once, when the scan is done.
  StateReport TakeStateReport();
  // Reads about `bytes_max` more bytes. Returns true once done. An error ends
  // the work. Errors: of the started call; FailedPrecondition (nothing was
  // started).
  absl::StatusOr<bool> Continue(uint64_t bytes_max);
  // The whole at once.
  absl::StatusOr<StateReport> MakeStateReport(bool from_head = false);
  // Gives up running work, if there is any: its asker is gone.
  void EndWork();

  // Sets `repairing`: from now on this replica knows nothing, until Install.
  // Does nothing if it is set already. Errors: FailedPrecondition (`epoch` is
  // not the promised one, or is installed); the medium's.
  absl::Status BeginRepair(Epoch epoch);

  // Allows a repair to copy bytes before `ceiling` here; 0: it copies nothing.
  // Raises the ceiling to the given one, or to a lap after the head if that is
  // less (SUP5); does nothing if it is there already. Forgets the proven place
  // if the last report named records before it, or if this promise had none
  // (REP8). Errors: FailedPrecondition (`epoch` is not the promised one);
  // InvalidArgument (no line begins there); the medium's.
  absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling);

  // Reads the records of the log, persists them, and commits (REP3). Records
  // that this replica has before its proven place, and that are the log's, were
  // read before. They are not read again if there are more than
  // read_whole_bytes_max (REP8). Their chain is that of the place. It uses no
  // record of a report's scan, since the primary may have written the ring
  // after it. The head may go back, since this replica may know a later head
  // that its primary told no other replica. But where the epoch is installed
  // already, neither the head, nor the ceiling, nor the end of what this
  // replica said it has persisted may go back (P-A5). Requires: no process
  // writes into the ring until Continue is done. Errors, except the medium's,
  // change no byte; DataLoss comes from Continue:
  //   FailedPrecondition  the epoch is not the promised one, or is below the
  //                       log epoch, or is installed and something would go
  //                       back, or is installed with another configuration; the
  //                       configuration is older, or does not name this replica
  //                       (P-A5)
  //   InvalidArgument     what no primary sends: a table that does not end with
  //                       the epoch where the log ends, impossible positions
  //   ResourceExhausted   the table has more entries than the region has room
  //                       for
  //   DataLoss            LSN, offset: a record is not there, or the chain
  //                       differs
  absl::Status StartInstall(const Installation& installation);
  // The whole at once.
  absl::Status Install(const Installation& installation);

  // Marks the replica as deleted, or says that the deletion is decided, in both
  // copies of the superline. Nothing is taken back: does nothing if the mark
  // says as much already (SUP6). From then on the replica promises nothing and
  // installs nothing. Errors: the medium's.
  absl::Status MarkDeleted(Deletion deletion);

  // Moves head and ceiling: records before the head are no longer needed.
  // Neither goes back: an older head only raises the ceiling. Does nothing if
  // both are there or further already. Errors: FailedPrecondition (`epoch` is
  // not both promised and installed); InvalidArgument (an impossible position);
  // the medium's.
  absl::Status PublishBounds(Epoch epoch, const RingBounds& bounds);

  // Rewrites each of superline and epoch table of which one copy is unreadable
  // or differs from the other (REP5). Returns how many of the two it rewrote.
  // Requires: no work is running. Errors: the medium's.
  absl::StatusOr<int> RepairCopies();

  // Returns the start of a RingLog on this replica, as Install left it. The log
  // becomes the writer of the superline (P-S4); this object is of no more use.
  // Requires: Install was OK, for the epoch that is promised.
  RingLogStart StartOfLog();

 private:
  enum class Condition { kGood, kMediumFailed, kOfTheLog };

  struct InstalledLog {
    WatermarkPlace last;  // of the record before `end`
    LogPosition end;
    LogPosition read_from;
    std::shared_ptr<LsnIndex> index;
  };

  // Running work: first the flush, then the scan or the reading.
  struct Work {
    RingOffset flushed;
    RingOffset flush_end;
    bool is_flushed = false;
    std::unique_ptr<StateReportScan> scan;
    Installation installation;
    std::unique_ptr<LogReading> reading;
  };

  LocalReplica(P& pmem, std::span<std::byte> region,
               LocalReplicaOptions options)
      : pmem_(pmem),
        region_(region),
        options_(std::move(options)),
        suspect_(options_.suspect) {}

  // Reads the region. Errors: this object may not be used any more.
  absl::Status Begin();
  absl::Status CheckIdentity() const;
  absl::Status CheckPromised(const char* call, Epoch epoch) const;
  // P-D2. Errors: NotFound.
  absl::Status CheckNotDeleted() const;
  // Checks the replica, and where the log starts and ends.
  absl::Status CheckInstallable(const Installation& installation) const;
  absl::Status CheckNothingGoesBack(const Installation& installation) const;
  absl::Status CheckMembership(const Installation& installation) const;
  absl::Status CheckPositions(const Installation& installation) const;
  // Runs both checks, and checks that the numbers leave room for a log.
  absl::Status CheckInstallation(const Installation& installation) const;
  // Returns the table with keys of this log.
  absl::StatusOr<EpochTable> CheckTable(const Installation& installation) const;
  const Configuration& ConfigurationWith(
      const Installation& installation) const {
    return installation.configuration.members.empty()
               ? state_.superline.configuration
               : installation.configuration;
  }
  Superline SuperlineWith(const Installation& installation) const;
  // Returns where reading the log to be installed begins.
  LogPosition ReadingStart(const Installation& installation) const;

  // Marks the replica on the medium as knowing nothing.
  absl::Status MarkRepairing();
  absl::Status ForgetPlace();
  absl::StatusOr<bool> FlushOn(uint64_t bytes_max);
  absl::StatusOr<bool> ContinueWork(uint64_t bytes_max);
  absl::Status ContinueToTheEnd();
  absl::Status Commit();

  // Repairs the copies, after Begin.
  absl::StatusOr<int> RepairCopiesOnMedium();
  absl::Status RepairTable();
  absl::Status UnmarkCleanClose();
  absl::Status UpdateSuperline(const Superline& next);
  // Remembers a failure of the medium; returns the status.
  absl::Status OfMedium(absl::Status status);

  P& pmem_;
  const std::span<std::byte> region_;
  const LocalReplicaOptions options_;
  // The state that the last call read, with its changes.
  RegionState state_;
  uint64_t superline_seq_ = 0;  // number of the copy that holds
  Condition condition_ = Condition::kGood;
  bool suspect_;           // until an epoch is installed
  Epoch promised_before_;  // the promise before the current one
  // First LSN that the last report of this promise named: its repair writes
  // there or later. None: no report was made.
  std::optional<Lsn> reported_from_;
  std::optional<InstalledLog> installed_;
  std::unique_ptr<Work> work_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_LOCAL_REPLICA_H_
