// SPDX-License-Identifier: Apache-2.0
// log_durability: how completed records of a log become durable, at once, under
// a policy or later, and how calls wait for that.
//
// Idea: both kinds of log make steps, which wait for no other host and for no
// open record. A call that waits is a loop over such a step, with the waiter
// between steps. The loops and their results are here. Each kind of log adds
// its step, and how a call sleeps:
//
//   LocalDurability       durable is what this host persisted
//                         (local_durability.h)
//   ReplicatedDurability  durable is what W replicas persisted; each step
//                         processes acks (replicated_durability.h)
//
// Parts of both:
//
//   Forcer            batches, watermark, durable LSN  (forcer.h)
//   GroupCommit       the window of that policy        (group_commit.h)
//   DurableCallbacks  OnDurable, OnPersisted           (durable_callbacks.h)
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
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/waiter.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/force_policy.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/group_commit.h"
#include "log/core/durability/persisted_by.h"
#include "log/core/read/lsn_index.h"
#include "log/core/space/reclaimer.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/core/write/reserver.h"
#include "log/format/layout.h"
#include "log/format/watermark.h"
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
  Progress& progress;
  LogFailure& failure;
  const Clock& clock;
};

struct LogDurabilityStart {
  Uuid log_id;
  Epoch log_epoch;
  WatermarkPlace last;  // of the record before `end`, if it is known
  LogPosition end;      // everything before it is durable
};

template <Persistence P>
class LogDurability {
 public:
  using Progressed = typename Forcer<P>::Progressed;
  // A step of a call. Returns true or an error to finish.
  using Attempt = absl::FunctionRef<absl::StatusOr<bool>()>;

  virtual ~LogDurability() = default;
  LogDurability(const LogDurability&) = delete;
  LogDurability& operator=(const LogDurability&) = delete;

  Forcer<P>& forcer() { return forcer_; }
  // Asked once per append, so it is no virtual call.
  bool is_replicated() const { return is_replicated_; }

  // Words for the reserver's gates.
  const std::atomic<uint64_t>& durable_lsn_word() const {
    return durable_lsn_word_;
  }
  virtual const std::atomic<uint64_t>& reuse_limit_word() const = 0;
  Lsn durable_lsn() const {
    return Lsn(durable_lsn_word_.load(std::memory_order_acquire));
  }
  // Returns the lowest LSN that is reserved and not finished, or the next LSN.
  Lsn first_open_lsn() const;

  // Makes one step towards making all records up to `lsn` durable.
  virtual Progressed Step(Lsn lsn) = 0;
  // The same, for a caller that waits if that does not suffice.
  virtual Progressed StepBeforeWait(Lsn lsn) { return Step(lsn); }
  // Processes acks, for calls that wait for something else than a force.
  virtual void Poll() = 0;
  // Sends the published head to the backups if it has moved.
  virtual void AnnounceHead() = 0;
  // Sends the backups the durable LSN of an idle log. Returns false if that
  // must be tried again.
  virtual bool AnnounceDurable() = 0;
  // Returns true if acks could still make records durable or bytes free.
  virtual bool AwaitsBackups() const = 0;
  // Returns true if no backup has anything to do, or the log has failed.
  virtual bool AreBackupsIdle() const = 0;

  // The calls below are those of alpheus/log.h. Requires: `lsn` was given, and
  // the policy is possible. Errors: the log's failure; DeadlineExceeded (LDU3);
  // FailedPrecondition (LDU2).

  // Forces the records that the policy asks for once `lsn` is completed.
  absl::Status ForceUnder(const ForcePolicy& policy, Lsn lsn,
                          Deadline deadline);
  virtual absl::Status BeginForce(Lsn lsn) = 0;
  absl::Status WaitDurable(Lsn lsn, Deadline deadline);
  void OnPersisted(PersistedBy by, Lsn lsn, DurableCallback callback);
  Lsn persisted_lsn(PersistedBy by) const {
    return callbacks_.persisted_lsn(by);
  }
  virtual absl::Status ConfirmEpoch(Deadline deadline) = 0;
  // A log that has failed says so to `callback`.
  virtual void OnEpochConfirmed(DurableCallback callback) = 0;

  // Calls `callback` once reservations go on. Returns false, and calls nothing,
  // if none are held.
  bool OnResumed(DurableCallback callback);
  // Notes that they go on; a Notify of the progress must follow.
  void NoteResumed() { callbacks_.NoteResumed(); }

  // Waits until W superlines have the published head.
  virtual absl::Status WaitHeadDurable(Deadline deadline) = 0;
  // Announces to the backups that everything is durable, and writes the last
  // watermarks. Requires: everything is durable, and nothing more is appended.
  absl::Status Finish();
  // Runs all callbacks that are left with `status`.
  void Abandon(const absl::Status& status) { callbacks_.Abandon(status); }

  // Fails if the calling thread has an open reservation up to `lsn` (LDU2).
  absl::Status CheckNotBlockedBySelf(Lsn lsn) const;
  // Runs `step` until it finishes, and waits for progress in between. `call` is
  // for the message of LDU3.
  virtual absl::Status WaitFor(const char* call, Deadline deadline,
                               Attempt step) = 0;

  // For the log's own thread, as the calls of AnyRingLog.
  virtual void WaitForWork(uint32_t seen, Deadline deadline) = 0;
  virtual bool WaitForAcks(Deadline deadline,
                           const std::atomic<uint32_t>& stop) = 0;

 protected:
  // `forcer` and the words must outlive the object.
  LogDurability(const LogDurabilityParts<P>& parts, Forcer<P>& forcer,
                const PersistedWords& words, bool is_replicated);

  // Wakes the log's own thread if a callback needs it.
  virtual void CallAckPollerIfNeeded() = 0;
  // Announces the durable LSN to the backups of a log that is idle at its end.
  virtual void AnnounceIdle() = 0;

  // Converts the result of a step: true, durable; false, not yet; else the
  // log's failure.
  absl::StatusOr<bool> IsDurable(Progressed progressed) const {
    if (progressed == Progressed::kFailed) return parts_.failure.status();
    return progressed == Progressed::kDurable;
  }
  const DurableCallbacks& callbacks() const { return callbacks_; }
  DurableCallbacks& callbacks() { return callbacks_; }
  const LogDurabilityParts<P>& parts() const { return parts_; }

  // The loop of WaitFor. `wait` waits as Progress::Wait does.
  template <class Wait>
  absl::Status LoopUntilDone(const char* call, Deadline deadline, Attempt step,
                             Wait wait);

 private:
  absl::Status ForceInGroup(uint32_t group, Lsn lsn, Deadline deadline);

  const LogDurabilityParts<P> parts_;
  Forcer<P>& forcer_;
  const std::atomic<uint64_t>& durable_lsn_word_;
  const bool is_replicated_;
  GroupCommit group_commit_;
  DurableCallbacks callbacks_;
};

template <Persistence P>
template <class Wait>
absl::Status LogDurability<P>::LoopUntilDone(const char* call,
                                             Deadline deadline, Attempt step,
                                             Wait wait) {
  Progress& progress = parts_.progress;
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
    if (finished.ok() && !*finished) wait(seen, deadline);
    progress.Withdraw();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
  }
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_LOG_DURABILITY_H_
