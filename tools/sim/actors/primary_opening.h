// SPDX-License-Identifier: Apache-2.0
// primary_opening: opens an epoch for a simulated application, and reports it
// to the checkers.
//
// Idea: it opens its own replica if it is a member, else it makes a working
// copy; it tries again as the openings of the library do; each opening that
// fails must have a reason that the faults so far allow.
//
// Thread safety: the process's first thread.
// References: recovery/opening/epoch_opening.h; primary_process.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_OPENING_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_OPENING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/arithmetic/promise.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/replica/local_replica.h"
#include "recovery/replica/openers_replica.h"
#include "recovery/resync/replica_resync.h"
#include "replication/fabric/fabric.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/checkers/damage_checker.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class PrimaryOpening {
 public:
  using Model = World::Model;

  // The process that opens. All must outlive the opening.
  struct Opener {
    World& world;
    World::Machine& machine;
    int host;
    ProcessFabric& fabric;
    ProcessClock& clock;
    Random& random;
    const MemberList& list;        // its cluster file
    std::optional<size_t> change;  // that it makes
    // False: its starter knows that there is no usable replica here.
    bool is_member;
  };

  explicit PrimaryOpening(const Opener& opener) : opener_(opener) {}

  // Opens the own replica, whose region the process has. Ends the process if
  // there is none that it can open.
  void OpenReplica();
  // Opens an epoch. Returns false if that fails, with status().
  bool OpenEpoch(PrimaryNumber number);
  // Reports the open epoch to the checkers. Returns its records, with the ones
  // put back that can't be read (damage_checker.h); nothing after a violation.
  // Valid until the next call.
  std::optional<std::vector<History::Shown>> NotifyHistory(
      PrimaryNumber number) {
    return NotifyHistory(number, *opened_);
  }
  // The same for a later epoch, in which the log goes on.
  std::optional<std::vector<History::Shown>> NotifyHistory(
      PrimaryNumber number, const recovery::EpochOpened& opened);

  // Returns the status of the last try.
  const absl::Status& status() const { return status_; }
  // Requires: OpenEpoch returned true.
  recovery::EpochOpened& opened() { return *opened_; }
  const recovery::EpochOpened& opened() const { return *opened_; }
  const quorum::PrimaryId& self() const { return self_; }
  // Returns the memory of the replica or the working copy; nullptr: none yet.
  Model* pmem() const { return pmem_; }
  // Drops the replica: the log has its region from now on.
  void DropReplica() { replica_.reset(); }
  bool has_failed_medium() const {
    return pmem_ != nullptr && !pmem_->Error().ok();
  }

  // Opens the source of ballots for a later epoch of this process
  // (SuccessionOptions::open_ballots). This object must outlive it.
  std::unique_ptr<quorum::BallotSource> OpenBallots();

  // Returns the machine of the own replica; nothing: it has a working copy.
  std::optional<int> replica_machine() const;
  // After NotifyHistory: returns whether an application could read all records;
  // and the LSN before which the openings of this process have read nothing.
  bool can_read_all() const { return can_read_all_; }
  Lsn read_from() const { return read_from_; }

  uint32_t WriteQuorum() const;
  uint32_t ReplicaCount() const;
  // Returns the limit of an election (EpochOpeningOptions::promised_max);
  // nothing: nobody elected this process.
  std::optional<Epoch> PromisedMax() const;
  recovery::ResyncOptions MakeResyncOptions() const;

 private:
  bool TryOnce(PrimaryNumber number, recovery::EpochOpeningOptions& options,
               quorum::BallotSource& ballots, bool& again);
  bool MayFail(const absl::Status& status) const;
  recovery::EpochOpeningOptions OpeningOptions() const;
  std::vector<int> Asked() const;
  bool IsListOutdated() const;
  absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>> MakeCache(
      uint64_t capacity);
  std::unique_ptr<quorum::Membership> MakeMembership(
      const quorum::PrimaryId& self);
  bool PumpInto(recovery::EpochOpening& opening);

  const Opener opener_;
  std::unique_ptr<Model> cache_pmem_;
  Model* pmem_ = nullptr;
  std::unique_ptr<recovery::LocalReplica<Model>> replica_;
  std::unique_ptr<quorum::Membership> membership_;  // while it opens
  quorum::PrimaryId self_;
  absl::Status status_;             // of the last try
  bool had_outdated_list_ = false;  // at the start of that try
  std::optional<recovery::EpochOpened> opened_;
  DamageChecker::Bytes restored_;  // that the records shown last lie in
  bool can_read_all_ = true;
  Lsn read_from_{0};
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_OPENING_H_
