// SPDX-License-Identifier: Apache-2.0
#include "api/service/served/served_log.h"

#include <algorithm>
#include <array>

#include "log/base/status_macros.h"

namespace alpheus::service {

void LogUse::Leave() {
  if (const std::shared_ptr<ServedLog> log = std::move(log_)) log->EndUse();
}

absl::StatusOr<std::shared_ptr<ServedLog>> ServedLog::Recover(
    Log& log, LogCounts& counts) {
  std::shared_ptr<ServedLog> served(new ServedLog(log, counts));
  ALPHEUS_RETURN_IF_ERROR(
      log.ForEachRecovered([&](const RecoveredRecord& record) {
        return served->service_.Recover({record.epoch, record.lsn},
                                        record.payload);
      }));
  return served;
}

LogUse ServedLog::Enter() {
  // Drain sets its flag, then looks at the uses: one of the two sees the other.
  uses_.fetch_add(1, std::memory_order_seq_cst);
  LogUse use(shared_from_this());
  if (is_drained_.load(std::memory_order_seq_cst)) use.Leave();
  return use;
}

void ServedLog::EndUse() {
  if (uses_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
      is_drained_.load(std::memory_order_seq_cst)) {
    uses_.notify_all();
  }
}

void ServedLog::Join(const std::shared_ptr<LogGuest>& guest) {
  {
    const MutexLock lock(mutex_);
    if (!is_drained_.load(std::memory_order_relaxed)) {
      guests_.emplace(guest.get(), guest);
      return;
    }
  }
  guest->OnDrain();
}

void ServedLog::Leave(const LogGuest* guest) {
  const MutexLock lock(mutex_);
  guests_.erase(guest);
  sleepers_.erase(guest);
}

void ServedLog::Drain() {
  std::map<const LogGuest*, std::weak_ptr<LogGuest>> guests;
  {
    const MutexLock lock(mutex_);
    is_drained_.store(true, std::memory_order_seq_cst);
    guests.swap(guests_);
  }
  for (const auto& [address, guest] : guests) {
    if (const std::shared_ptr<LogGuest> present = guest.lock()) {
      present->OnDrain();
    }
  }
  WakeAll();
  for (uint32_t uses = uses_.load(std::memory_order_seq_cst); uses != 0;
       uses = uses_.load(std::memory_order_seq_cst)) {
    uses_.wait(uses, std::memory_order_seq_cst);
  }
}

void ServedLog::Settle(std::span<const Verdict> verdicts,
                       std::optional<PersistedBy> by,
                       const std::function<void(const absl::Status&)>& done) {
  NoteAppended();
  NoteTold(verdicts);
  service_.Settle(verdicts, by, done);
}

// The log may still have the callback when nobody uses it any more: it keeps
// what the callback needs.
void ServedLog::BeginRead(
    Consistency consistency, Lsn through,
    std::function<void(const absl::StatusOr<Lsn>&)> done) {
  service_.BeginRead(
      consistency, through,
      [self = shared_from_this(), done = std::move(done)](
          const absl::StatusOr<Lsn>& durable) { done(durable); });
}

void ServedLog::NoteTold(std::span<const Verdict> verdicts) {
  std::array<uint64_t, kFindingCount> numbers{};
  for (const Verdict& verdict : verdicts) {
    ++numbers[static_cast<size_t>(verdict.finding)];
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    counts_.NoteTold(static_cast<Finding>(i), numbers[i]);
  }
}

size_t ServedLog::guests() {
  const MutexLock lock(mutex_);
  return guests_.size();
}

void ServedLog::NoteAppended() {
  // A sleeper says that there is one, then looks for its record; here the
  // record is there, and then the sleeper is looked for (SVD2).
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_sleepers_.load(std::memory_order_relaxed)) Watch();
}

void ServedLog::Sleep(const LogGuest* guest, Lsn lsn,
                      std::function<void()> wake) {
  {
    const MutexLock lock(mutex_);
    awaited_ = sleepers_.empty() ? lsn : std::min(awaited_, lsn);
    sleepers_.emplace(guest, std::move(wake));
    has_sleepers_.store(true, std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (is_drained_.load(std::memory_order_seq_cst)) {
    WakeAll();
  } else {
    Watch();
  }
}

void ServedLog::Watch() {
  Lsn first;
  {
    const MutexLock lock(mutex_);
    if (is_watched_ || sleepers_.empty()) return;
    first = awaited_;
    if (first >= log_.next_lsn()) return;
    is_watched_ = true;
  }
  // The log keeps the callback until it is closed, which waits for uses alone.
  const std::weak_ptr<ServedLog> self = weak_from_this();
  const absl::Status watched =
      log_.OnDurable(first, [self](const absl::Status&) {
        if (const auto log = self.lock()) log->WakeAll();
      });
  if (!watched.ok()) WakeAll();
}

void ServedLog::WakeAll() {
  std::map<const LogGuest*, std::function<void()>> sleepers;
  {
    const MutexLock lock(mutex_);
    sleepers.swap(sleepers_);
    is_watched_ = false;
    has_sleepers_.store(false, std::memory_order_relaxed);
  }
  for (const auto& [guest, wake] : sleepers) wake();
}

}  // namespace alpheus::service
