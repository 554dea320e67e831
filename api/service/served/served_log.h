// SPDX-License-Identifier: Apache-2.0
// served_log: an open log while the service serves it, and its end in good
// order.
//
// Idea: calls and streams *use* the log. Before it is given back it is drained:
// streams are told to read no more, and whoever uses the log leaves when it has
// what it waits for. Nothing waits for a client: a stream whose client reads
// slowly has left the log by then, and still has its last answers.
//
//   Drain   no new use   every Guest is told   no use is left   the log may go
//
// Readers that have seen all durable records sleep here, and are woken when the
// next one is durable. A log without sleepers pays one load for each group of
// records.
//
// Invariants:
//   SVD1. The log is not touched after Drain has returned: all that touches it
//         has a Use, or is a callback that the log itself runs.
//   SVD2. A sleeper is woken once its record is durable, or once the log has
//         failed or is drained. It may be woken earlier.
// Thread safety: all members by many threads, but for Recover.
// References: docs/design/service.md; protocol P-Z3.
#ifndef ALPHEUS_API_SERVICE_SERVED_SERVED_LOG_H_
#define ALPHEUS_API_SERVICE_SERVED_SERVED_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "api/service/log/log_counts.h"
#include "api/service/log/open_log.h"
#include "api/service/log/service_log.h"
#include "api/service/served/durable_waits.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/core/durability/persisted_by.h"

namespace alpheus::service {

class ServedLog;

// A stream that uses a log for long.
class LogGuest {
 public:
  virtual ~LogGuest() = default;
  // Leaves the log as soon as all that it has admitted is answered. Called once
  // at most, by any thread; does not wait.
  virtual void OnDrain() = 0;
};

// A use of a log. While there is one, the log stays open.
class LogUse {
 public:
  LogUse() = default;
  LogUse(LogUse&& other) noexcept : log_(std::move(other.log_)) {}
  LogUse& operator=(LogUse&& other) noexcept {
    if (this != &other) {
      Leave();
      log_ = std::move(other.log_);
    }
    return *this;
  }
  ~LogUse() { Leave(); }

  ServedLog& operator*() const { return *log_; }
  ServedLog* operator->() const { return log_.get(); }
  explicit operator bool() const { return log_ != nullptr; }
  // Ends the use.
  void Leave();

 private:
  friend class ServedLog;
  explicit LogUse(std::shared_ptr<ServedLog> log) : log_(std::move(log)) {}

  std::shared_ptr<ServedLog> log_;
};

class ServedLog : public std::enable_shared_from_this<ServedLog> {
 public:
  // Makes the table of clients from what `log` recovered. The log must stay
  // open until Drain has returned. Errors: FailedPrecondition, Unimplemented,
  // DataLoss (not to be served, as ServiceLog::Recover); those of
  // Log::ForEachRecovered. `counts` must outlive the object.
  static absl::StatusOr<std::shared_ptr<ServedLog>> Recover(Log& log,
                                                            LogCounts& counts);

  // Begins a use; nothing once the log is drained.
  LogUse Enter();
  // Has the guest told when the log is drained; at once if it is already.
  void Join(const std::shared_ptr<LogGuest>& guest);
  // Forgets the guest: it is neither told nor woken any more, but for a call
  // that is under way.
  void Leave(const LogGuest* guest);
  // Ends all uses, and waits for the last one. Blocks: records that are
  // admitted become durable first, or the log fails.
  void Drain();

  // Requires, here and below: the caller has a use.
  Log& log() { return log_; }
  ServiceLog& service() { return service_; }
  LogCounts& counts() { return counts_; }
  // Returns how many streams use the log; and how many uses it has, theirs
  // included.
  size_t guests();
  uint32_t uses() const { return uses_.load(std::memory_order_relaxed); }
  DurableWaits& waits() { return *waits_; }

  // As ServiceLog::Settle; also notes what was appended, and counts what
  // clients are told.
  void Settle(std::span<const Verdict> verdicts, std::optional<PersistedBy> by,
              const std::function<void(const absl::Status&)>& done);
  // As ServiceLog::BeginRead. The reader may leave the log before `done` is
  // called.
  void BeginRead(Consistency consistency, Lsn through,
                 std::function<void(const absl::StatusOr<Lsn>&)> done);
  // Is called once records were appended that nobody settles.
  void NoteAppended();
  // Calls `wake` once: when the record of this LSN is durable, or the log has
  // failed or is drained. Perhaps before it returns. Requires: the guest does
  // not sleep.
  void Sleep(const LogGuest* guest, Lsn lsn, std::function<void()> wake);

 private:
  friend class LogUse;
  ServedLog(Log& log, LogCounts& counts)
      : log_(log),
        counts_(counts),
        records_(log),
        service_(records_, log.report().epoch, &counts),
        waits_(std::make_shared<DurableWaits>(log)) {}

  void EndUse();
  void NoteTold(std::span<const Verdict> verdicts);
  // Has the first sleeper woken, if its record is there.
  void Watch();
  void WakeAll();

  Log& log_;
  LogCounts& counts_;
  OpenLog records_;
  ServiceLog service_;
  const std::shared_ptr<DurableWaits> waits_;
  std::atomic<uint32_t> uses_{0};
  std::atomic<bool> is_drained_{false};
  std::atomic<bool> has_sleepers_{false};
  Mutex mutex_;
  std::map<const LogGuest*, std::weak_ptr<LogGuest>> guests_
      ABSL_GUARDED_BY(mutex_);
  std::map<const LogGuest*, std::function<void()>> sleepers_
      ABSL_GUARDED_BY(mutex_);
  // Lowest LSN that one of them has waited for.
  Lsn awaited_ ABSL_GUARDED_BY(mutex_);
  bool is_watched_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_SERVED_SERVED_LOG_H_
