// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/held_logs.h"

#include "log/base/check.h"

namespace alpheus::metrics {

HeldLogs::HeldLogs(const std::vector<std::string>& names) {
  for (const std::string& name : names) logs_.try_emplace(name);
}

HeldLogs::Entry& HeldLogs::Known(const std::string& name) {
  const auto found = logs_.find(name);
  ALPHEUS_CHECK(found != logs_.end(), "the node stands for this log");
  return found->second;
}

void HeldLogs::Take(const std::string& name, const Log& log) {
  Entry& entry = Known(name);
  const MutexLock lock(entry.mutex);
  entry.log = &log;
  ++entry.openings;
  entry.last_opening = log.report().moments;
}

void HeldLogs::GiveBack(const std::string& name) {
  Entry& entry = Known(name);
  const MutexLock lock(entry.mutex);  // HLG1
  entry.log = nullptr;
}

void HeldLogs::ForEach(absl::FunctionRef<void(const Held&)> visit) const {
  for (const auto& [name, entry] : logs_) {
    const MutexLock lock(entry.mutex);
    visit({name, entry.log, entry.openings, entry.last_opening});
  }
}

}  // namespace alpheus::metrics
