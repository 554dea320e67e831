// SPDX-License-Identifier: Apache-2.0
// log_durability: how completed records of a log become durable, at once, under
// a policy or later, and how calls wait for that.
//
// Idea: a local log is durable up to what its Forcer persisted. A replicated
// one is durable up to what W replicas persisted, and its ReplicatedForcer
// drives the Forcer. Both make steps, which wait for no other host and for no
// open record. A call that waits is a loop over such a step, with the waiter
// between steps. In a replicated log each step processes acks, and one of the
// calls that would sleep waits for acks (activity_watch.h).
//
//   Forcer             batches, watermark, durable LSN (forcer.h)
//   ReplicatedForcer   durable on W replicas           (replicated_forcer.h)
//   GroupCommit        the window of that policy       (group_commit.h)
//   DurableCallbacks   OnDurable                       (durable_callbacks.h)
//
// Invariants:
//   LDU1. Before a call sleeps it announces itself and steps once more, because
//         changes before the announcement notified nobody.
//   LDU2. No call waits for a reservation that its own thread has open (P-F2).
//   LDU3. A deadline that passes ends the call, and changes nothing of the log.
// Thread safety: all members concurrently, but Finish and Abandon alone.
// May block: Step, Poll, AnnounceHead and AnnounceDurable as one step of the
// forcer (forcer.h, replicated_forcer.h). Calls with a deadline wait until then
// for other threads' records and for W acks. Finish waits at most 50 ms for
// backups, and for the fences of the last watermarks.
// References: Arcadia §4.3, §4.4; protocol P-A3.3, P-F2, P-F7.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_LOG_DURABILITY_H_
#define ALPHEUS_LOG_CORE_DURABILITY_LOG_DURABILITY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/waiter.h"
#include "log/core/durability/activity_watch.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/flush_order.h"
#include "log/core/durability/force_policy.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/group_commit.h"
#include "log/core/durability/replicated_forcer.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/lsn_index.h"
#include "log/core/space/reclaimer.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/core/write/reserver.h"
#include "log/format/layout.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// The parts of one log that its durability works with. All must outlive it.
template <Persistence P>
struct LogDurabilityParts {
  const std::string& name;  // name of the region, for messages
  P& pmem;
  std::span<std::byte> region;
  const Ring& ring;
  LsnIndex& index;
  CompletionTracker& tracker;
  Reclaimer<P>& reclaimer;
  // Not used before the log is whole: it is made after this.
  const Reserver& reserver;
  ActivityWatch* watch;  // nullptr: a local log
  Progress& progress;
  LogFailure& failure;
  const Clock& clock;
  Waiter& waiter;
};

struct LogDurabilityStart {
  ReplicationSink* sink = nullptr;  // nullptr: a local log
  FlushOrder flush_order = FlushOrder::kRemoteFirst;
  Uuid log_id;
  Epoch log_epoch;
  LogPosition end;  // everything before it is durable
};

template <Persistence P>
class LogDurability {
 public:
  using Progressed = typename Forcer<P>::Progressed;

  LogDurability(const LogDurabilityParts<P>& parts,
                const LogDurabilityStart& start);
  LogDurability(const LogDurability&) = delete;
  LogDurability& operator=(const LogDurability&) = delete;

  Forcer<P>& forcer() { return forcer_; }
  // Returns nullptr in a local log.
  ReplicatedForcer<P>* replicated() const { return replicated_.get(); }
  bool is_replicated() const { return replicated_ != nullptr; }

  // Words for the reserver's gates.
  const std::atomic<uint64_t>& durable_lsn_word() const {
    return durable_lsn_word_;
  }
  const std::atomic<uint64_t>& reuse_limit_word() const {
    return replicated_ == nullptr ? parts_.reclaimer.reuse_limit_word()
                                  : replicated_->reuse_limit_word();
  }
  Lsn durable_lsn() const {
    return Lsn(durable_lsn_word_.load(std::memory_order_acquire));
  }
  // Returns the lowest LSN that is reserved and not finished, or the next LSN.
  Lsn first_open_lsn() const;

  // Makes one step towards making all records up to `lsn` durable.
  Progressed Step(Lsn lsn) {
    return replicated_ == nullptr ? forcer_.Step(lsn) : replicated_->Step(lsn);
  }
  // Processes acks, for calls that wait for something else than a force.
  void Poll() {
    if (replicated_ != nullptr) replicated_->Poll();
  }
  // Sends the published head to the backups if it has moved.
  void AnnounceHead() {
    if (replicated_ != nullptr) replicated_->PollIfHeadMoved();
  }
  // Sends the backups the durable LSN of an idle log. Returns false if that
  // must be tried again.
  bool AnnounceDurable() {
    return replicated_ == nullptr || replicated_->AnnounceDurable();
  }
  // Returns true if acks could still make records durable or bytes free.
  bool AwaitsBackups() const {
    return replicated_ != nullptr && replicated_->AwaitsBackups();
  }
  // Returns true if no backup has anything to do.
  bool AreBackupsIdle() const {
    return replicated_ == nullptr || replicated_->is_idle();
  }

  // The calls below are those of alpheus/log.h. Requires: `lsn` was given, and
  // the policy is possible. Errors: the log's failure; DeadlineExceeded (LDU3);
  // FailedPrecondition (LDU2).

  // Forces the records that the policy asks for once `lsn` is completed.
  absl::Status ForceUnder(const ForcePolicy& policy, Lsn lsn,
                          Deadline deadline);
  absl::Status BeginForce(Lsn lsn);
  absl::Status WaitDurable(Lsn lsn, Deadline deadline);
  void OnDurable(Lsn lsn, DurableCallback callback);
  // Returns true if a callback waits for a record that was offered to the
  // backups. Requires: is_replicated().
  bool HasCallbackOnItsWay() const;

  // Waits until W superlines have the published head.
  absl::Status WaitHeadDurable(Deadline deadline);
  // Announces to the backups that everything is durable, and writes the last
  // watermarks. Requires: everything is, and nothing more is appended.
  absl::Status Finish();
  // Runs all callbacks that are left with `status`.
  void Abandon(const absl::Status& status) { callbacks_.Abandon(status); }

  // Fails if the calling thread has an open reservation up to `lsn` (LDU2).
  absl::Status CheckNotBlockedBySelf(Lsn lsn) const;
  // Runs `step` until it finishes, and waits for progress in between. Attempt:
  // StatusOr<bool>(); true or an error finishes. `call` is for the message of
  // LDU3.
  template <class Attempt>
  absl::Status WaitFor(const char* call, Deadline deadline, Attempt step);

 private:
  std::unique_ptr<ReplicatedForcer<P>> MakeReplicated(
      const LogDurabilityStart& start);
  absl::Status ForceInGroup(uint32_t group, Lsn lsn, Deadline deadline);
  // Wakes the log's own thread (log_service.h) if a callback needs it.
  void CallAckPollerIfNeeded();
  void AnnounceIdle();

  const LogDurabilityParts<P> parts_;
  // Progress of the forcer in a replicated log. No thread waits on it, since a
  // record that is persisted here alone is no news.
  Progress own_progress_;
  Forcer<P> forcer_;
  const std::unique_ptr<ReplicatedForcer<P>> replicated_;  // null: local
  const std::atomic<uint64_t>& durable_lsn_word_;
  GroupCommit group_commit_;
  DurableCallbacks callbacks_;
};

template <Persistence P>
template <class Attempt>
absl::Status LogDurability<P>::WaitFor(const char* call, Deadline deadline,
                                       Attempt step) {
  Progress& progress = parts_.progress;
  ActivityWatch::Role role(parts_.watch, progress);
  for (int round = 0;; ++round) {
    absl::StatusOr<bool> finished = step();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
    if (deadline.is_set() && deadline.HasPassed(parts_.clock.NowNanos())) {
      return absl::DeadlineExceededError(absl::StrCat(
          parts_.name, ": ", call, " reached its deadline; LSN ",
          first_open_lsn().value, " is the first not finished, durable is ",
          durable_lsn().value,
          ". A record that was completed may still become durable"));
    }
    if (progress.Spin(round)) continue;
    const uint32_t seen = progress.Announce();
    finished = step();
    if (finished.ok() && !*finished) role.Wait(seen, deadline);
    progress.Withdraw();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
  }
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_LOG_DURABILITY_H_
