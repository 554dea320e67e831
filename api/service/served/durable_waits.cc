// SPDX-License-Identifier: Apache-2.0
#include "api/service/served/durable_waits.h"

#include <algorithm>
#include <limits>

namespace alpheus::service {

absl::Status DurableWaits::Wait(const void* caller, Lsn lsn, Tell tell) {
  // The log says what is wrong with an LSN that it has not assigned.
  if (lsn == Lsn() || lsn >= log_.next_lsn()) {
    const absl::Status assigned = log_.OnDurable(lsn, [](const auto&) {});
    if (!assigned.ok()) return assigned;
  }
  {
    const MutexLock lock(mutex_);
    callers_.emplace(caller, Caller{lsn, std::move(tell)});
    by_lsn_.emplace(lsn, caller);
  }
  Watch();
  return absl::OkStatus();
}

void DurableWaits::Leave(const void* caller) {
  Tell left;  // ends without the lock: it may be the last user of the log
  const MutexLock lock(mutex_);
  const auto found = callers_.find(caller);
  if (found == callers_.end()) return;
  left = std::move(found->second.tell);
  by_lsn_.erase({found->second.lsn, caller});
  callers_.erase(found);
}

size_t DurableWaits::count() {
  const MutexLock lock(mutex_);
  return callers_.size();
}

size_t DurableWaits::watches() {
  const MutexLock lock(mutex_);
  return watched_.size();
}

void DurableWaits::Watch() {
  Lsn first;
  {
    const MutexLock lock(mutex_);
    if (by_lsn_.empty()) return;
    first = by_lsn_.begin()->first;
    // DWT2. A lower LSN that is watched is told first.
    if (!watched_.empty() && *watched_.begin() <= first) return;
    watched_.insert(first);
  }
  const absl::Status watches = log_.OnDurable(
      first, [self = weak_from_this(), first](const absl::Status& status) {
        if (const auto waits = self.lock()) waits->OnTold(first, status);
      });
  if (!watches.ok()) OnTold(first, watches);
}

void DurableWaits::OnTold(Lsn lsn, const absl::Status& status) {
  std::vector<Tell> told;
  {
    const MutexLock lock(mutex_);
    watched_.erase(lsn);
    constexpr Lsn kAll(std::numeric_limits<uint64_t>::max());
    told = TakeThrough(status.ok() ? std::max(lsn, log_.durable_lsn()) : kAll);
  }
  for (const Tell& tell : told) tell(status);
  Watch();
}

std::vector<DurableWaits::Tell> DurableWaits::TakeThrough(Lsn last) {
  std::vector<Tell> taken;
  while (!by_lsn_.empty() && by_lsn_.begin()->first <= last) {
    const auto found = callers_.find(by_lsn_.begin()->second);
    taken.push_back(std::move(found->second.tell));
    callers_.erase(found);
    by_lsn_.erase(by_lsn_.begin());
  }
  return taken;
}

}  // namespace alpheus::service
