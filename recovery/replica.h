// SPDX-License-Identifier: Apache-2.0
// replica: one replica of a log, as its own process holds it while epochs are
// opened: it promises, answers, is repaired, and installs.
//
// Idea: protocol P-A4 as one replica sees it, without the network: backups call
// it for the messages that arrive, a primary calls it for its own replica. It
// is the only writer of the region's superline, epoch table and, outside a
// session, its watermark (P-S4). What others write into the ring in between is
// theirs; nothing of it counts before Install has read it all.
//
// Invariants:
//   REP1. A promise is on media before AcceptPromise returns, and never goes
//         back (PRO1, PRO2 of promise.h).
//   REP2. Whatever MakeAnswer says this replica has is persisted before it
//         returns (P-H7).
//   REP3. log_epoch = e is on media only when every record of the installed log
//         has been read at this replica, with its payload and the chain, and
//         persisted (P-H3, P-INV-3).
//   REP4. `repairing` is cleared only together with REP3 (P-H12).
//   REP5. Before each change the region is read anew, so that the copy that is
//         overwritten first is never the only good one (INS1 of installer.h);
//         after it both copies of superline and table are equal (P-S2).
//   REP6. After a failure of the medium, which leaves open what is on it, this
//         object says and changes nothing any more.
//   REP7. The configuration changes only together with REP3, to one that names
//         this replica and is no older (P-A5, P-H18).
// Persistence, crash states of Install in order; each reopened as before it or,
// from the superline on, as after:
//   1. installed records flushed
//   2. clean-close word cleared (by the promise already)
//   3. epoch table with the new entry in the copy that no superline names
//   4. superline: log_epoch = e, head, configuration, names the new table
//                                                              <- commit
//   5. epoch table in the other copy
//   6. watermark lines of epoch e, one after the other
//   7. damaged PADs written anew: under the new table nothing that is valid
//      lies there; until then scans pass over them (RC2 of record_cursor.h)
// AcceptPromise, BeginRepair and PublishHead are one superline update each,
// before which AcceptPromise mends what a cut left of an earlier one.
// Thread safety: one thread, whose process holds the region's lock.
// References: protocol P-A2, P-A4, P-A6; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_REPLICA_H_
#define ALPHEUS_RECOVERY_REPLICA_H_

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
#include "log/core/lsn_index.h"
#include "log/core/region_state.h"
#include "log/core/ring_log.h"
#include "log/core/scan.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/pmem/persistence.h"
#include "quorum/promise.h"
#include "recovery/answer.h"
#include "recovery/answer_scan.h"
#include "recovery/log_reading.h"

namespace alpheus {

struct ReplicaOptions {
  std::string name;  // of the region, for messages
  std::optional<Uuid> expected_cluster_id = std::nullopt;
  std::optional<Uuid> expected_log_id = std::nullopt;
  std::optional<NodeId> expected_node = std::nullopt;
  bool suspect = false;  // see Answer
};

template <Persistence P>
class Replica {
 public:
  // Reads what the region says of itself, and persists what it read: a process
  // that was killed may have left stores in the cache (P-A4.2). The ring is
  // persisted by whatever says something of it. Changes no byte, but for a
  // suspect one, whose superline says `repairing` from then on.
  // Errors: as ReadRegionState; FailedPrecondition (another cluster or log,
  // the replica of another node); the medium's.
  static absl::StatusOr<std::unique_ptr<Replica>> Open(
      P& pmem, std::span<std::byte> region, const ReplicaOptions& options);

  const std::string& name() const { return options_.name; }
  std::span<std::byte> region() const { return region_; }
  const Superline& superline() const { return state_.superline; }
  const EpochTable& table() const { return state_.table; }
  Ring ring() const { return RingOf(region_, state_.superline); }
  // Whether the configuration names another incarnation (P-A4).
  bool is_blank() const { return IsBlank(state_.superline); }

  // After an error of the medium, and after StartOfLog, all of the following
  // are FailedPrecondition: open the region again. Each reads the region first
  // and has the errors of ReadRegionState, too.

  // Promises, if the rule of promise.h allows it: persisted on OK, in both
  // copies. Then, before anything else, the caller destroys all earlier
  // sessions with their keys, of the same epoch too.
  // Errors: as AnswerPromise; InvalidArgument (an epoch that no later one could
  // be above); the medium's.
  absl::StatusOr<PromiseVerdict> AcceptPromise(const Promise& request);

  // The two calls that look at the whole ring are made in slices, between which
  // whoever serves other logs serves them: started, then continued until it is
  // done. A call that changes the replica, and a promise that is repeated, end
  // what is under way; one that is refused does not.

  // Persists what is visible, scans and answers. Requires: fenced, as above,
  // until TakeAnswer. The flush is of the whole region, as earlier sessions may
  // have written anywhere in the ring: a write-back per line, and of clean
  // lines, which are nearly all, the cheaper half; the scan that follows reads
  // every line too. Errors: the medium's.
  absl::Status StartAnswer();
  // Once, when it is done.
  Answer TakeAnswer();
  // Looks at about so many bytes more. True: it is done. After an error nothing
  // is under way any more. Errors: of what was started; FailedPrecondition
  // (nothing is under way).
  absl::StatusOr<bool> Continue(uint64_t bytes_max);
  // The whole at once.
  absl::StatusOr<Answer> MakeAnswer();
  // Gives up what is under way, if anything is: who asked for it has gone.
  void EndWork();

  // Sets `repairing`: from here until Install this replica knows nothing. OK
  // and nothing to do if it is set.
  // Errors: FailedPrecondition (`epoch` is not the promised one, or installed);
  // the medium's.
  absl::Status BeginRepair(Epoch epoch);

  // Reads all records of the log, persists them, and says so (REP3). Nothing is
  // taken over from the scan of an answer: since then a primary had the ring.
  // The head may be behind this replica's: it may have been told of a later one
  // that no other replica, and so not the primary, knows.
  // The epoch may be installed already: then nothing goes back, neither the
  // head nor the end of what this replica said that it has persisted (P-A5).
  // Requires, of what Continue continues: nobody writes into the ring until it
  // is done. Errors, the medium's apart, change no byte; the last one comes
  // from Continue:
  //   FailedPrecondition  the epoch is not the promised one, or below the log
  //                       epoch, or that one and something would go back, or
  //                       with another configuration; the configuration is
  //                       older, or does not name this replica (P-A5)
  //   InvalidArgument     what no primary sends: a table that does not end with
  //                       the epoch where the log ends, positions that can't be
  //   ResourceExhausted   the table has more entries than the region has room
  //                       for
  //   DataLoss            LSN, offset: a record is not there, or the chain
  //                       differs
  absl::Status StartInstall(const Installation& installation);
  // The whole at once.
  absl::Status Install(const Installation& installation);

  // Moves the head: what is before it is no longer needed. OK and nothing to do
  // if it is there or behind it already.
  // Errors: FailedPrecondition (`epoch` is not both promised and installed);
  // InvalidArgument (a position that can't be); the medium's.
  absl::Status PublishHead(Epoch epoch, const LogPosition& head);

  // Writes superline and epoch table anew of which one copy can't be read, or
  // is not equal to the other (REP5). Returns how many of the two. Requires:
  // nothing is under way. Errors: the medium's.
  absl::StatusOr<int> MendCopies();

  // For a RingLog that goes on with this replica, as Install left it; it then
  // is the writer of the superline (P-S4), and this object of no more use.
  // Requires: Install was OK, for the epoch that is promised.
  RingLogStart StartOfLog();

 private:
  enum class Condition { kGood, kMediumFailed, kHandedOver };

  struct InstalledLog {
    LogPosition end;
    std::shared_ptr<LsnIndex> index;
  };

  // What is under way: first the flush, then one of the two.
  struct Work {
    RingOffset flushed;
    RingOffset flush_end;
    bool is_flushed = false;
    std::unique_ptr<AnswerScan> scan;
    Installation installation;
    std::unique_ptr<LogReading> reading;
  };

  Replica(P& pmem, std::span<std::byte> region, ReplicaOptions options)
      : pmem_(pmem),
        region_(region),
        options_(std::move(options)),
        suspect_(options_.suspect) {}

  // Reads the region, if this object may still be used.
  absl::Status Begin();
  absl::Status CheckIdentity() const;
  absl::Status CheckPromised(const char* call, Epoch epoch) const;
  // Of this replica, and of where the log starts and ends.
  absl::Status CheckInstallable(const Installation& installation) const;
  absl::Status CheckNothingGoesBack(const Installation& installation) const;
  absl::Status CheckMembership(const Installation& installation) const;
  absl::Status CheckPositions(const Installation& installation) const;
  // Both, and that the numbers leave room.
  absl::Status CheckInstallation(const Installation& installation) const;
  // The table with keys of this log.
  absl::StatusOr<EpochTable> CheckTable(const Installation& installation) const;
  const Configuration& ConfigurationWith(
      const Installation& installation) const {
    return installation.configuration.members.empty()
               ? state_.superline.configuration
               : installation.configuration;
  }
  Superline SuperlineWith(const Installation& installation) const;

  // Says on the medium that nothing here is to be believed.
  absl::Status MarkRepairing();
  absl::StatusOr<bool> FlushOn(uint64_t bytes_max);
  absl::StatusOr<bool> ContinueWork(uint64_t bytes_max);
  absl::Status ContinueToTheEnd();
  absl::Status Commit();

  // Of those that can be read here.
  absl::StatusOr<int> MendCopiesOnMedium();
  absl::Status MendTable();
  absl::Status UnmarkCleanClose();
  absl::Status UpdateSuperline(const Superline& next);
  // Remembers a failure.
  absl::Status OfMedium(absl::Status status);

  P& pmem_;
  const std::span<std::byte> region_;
  const ReplicaOptions options_;
  RegionState state_;           // as read by the last call, and what it changed
  uint64_t superline_seq_ = 0;  // of the one that holds
  Condition condition_ = Condition::kGood;
  bool suspect_;           // until an epoch is installed
  Epoch promised_before_;  // before the promise that stands
  std::optional<InstalledLog> installed_;
  std::unique_ptr<Work> work_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REPLICA_H_
