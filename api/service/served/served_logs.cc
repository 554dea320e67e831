// SPDX-License-Identifier: Apache-2.0
#include "api/service/served/served_logs.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::service {

ServedLogs::ServedLogs(const std::vector<std::string>& names) {
  for (const std::string& name : names) logs_.try_emplace(name);
}

ServedLogs::Entry& ServedLogs::Known(const std::string& name) {
  const auto found = logs_.find(name);
  ALPHEUS_CHECK(found != logs_.end(), "the node stands for this log");
  return found->second;
}

void ServedLogs::SetFindPrimary(const std::string& name, FindPrimary find) {
  const MutexLock lock(mutex_);
  Known(name).find_primary = std::move(find);
}

void ServedLogs::SetAddresses(std::map<uint64_t, std::string> addresses) {
  const MutexLock lock(mutex_);
  addresses_ = std::move(addresses);
}

std::string ServedLogs::AddressOf(uint64_t node) {
  const MutexLock lock(mutex_);
  const auto found = addresses_.find(node);
  return found == addresses_.end() ? "" : found->second;
}

absl::Status ServedLogs::Serve(const std::string& name, Log& log) {
  LogCounts* counts = nullptr;
  {
    const MutexLock lock(mutex_);
    counts = &Known(name).counts;  // names are neither added nor removed
  }
  absl::StatusOr<std::shared_ptr<ServedLog>> served =
      ServedLog::Recover(log, *counts);
  const MutexLock lock(mutex_);
  Entry& entry = Known(name);
  if (!served.ok()) {
    entry.why_withheld = absl::FailedPreconditionError(absl::StrCat(
        "log ", name, " is open, but not served: ", served.status().message()));
    return served.status();
  }
  entry.served = *std::move(served);
  if (on_change_) on_change_(name, true);
  return absl::OkStatus();
}

void ServedLogs::Withdraw(const std::string& name) {
  std::shared_ptr<ServedLog> served;
  {
    const MutexLock lock(mutex_);
    Entry& entry = Known(name);
    served = std::move(entry.served);
    entry.why_withheld = absl::OkStatus();
    if (served != nullptr && on_change_) on_change_(name, false);
  }
  if (served != nullptr) served->Drain();
}

void ServedLogs::SetDeleted(const std::string& name) {
  const MutexLock lock(mutex_);
  Known(name).is_deleted = true;
}

FoundLog ServedLogs::Find(const std::string& name) {
  const MutexLock lock(mutex_);
  FoundLog result;
  const auto found = logs_.find(name);
  if (found == logs_.end()) {
    result.status = absl::NotFoundError(absl::StrCat(
        "log ", name, ": this node does not stand for it (alpheusd --stand)"));
    return result;
  }
  const Entry& entry = found->second;
  if (entry.is_deleted) {
    result.status =
        absl::NotFoundError(absl::StrCat("log ", name, ": it was deleted"));
    return result;
  }
  if (entry.served != nullptr) result.use = entry.served->Enter();
  if (result.use) return result;
  if (!entry.why_withheld.ok()) {
    result.status = entry.why_withheld;
    return result;
  }
  if (entry.find_primary) result.primary = entry.find_primary();
  const auto address = addresses_.find(result.primary.node);
  if (address != addresses_.end()) result.address = address->second;
  result.status = absl::UnavailableError(
      absl::StrCat("log ", name,
                   ": this node is not primary; as far as it "
                   "knows, ",
                   result.primary.ToString()));
  return result;
}

LogUse ServedLogs::Use(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = logs_.find(name);
  if (found == logs_.end() || found->second.served == nullptr) return {};
  return found->second.served->Enter();
}

const LogCounts& ServedLogs::counts(const std::string& name) {
  const MutexLock lock(mutex_);
  return Known(name).counts;
}

std::vector<std::pair<std::string, bool>> ServedLogs::List() {
  std::vector<std::pair<std::string, bool>> logs;
  const MutexLock lock(mutex_);
  for (const auto& [name, entry] : logs_) {
    if (entry.is_deleted) continue;
    logs.emplace_back(name, entry.served != nullptr);
  }
  return logs;
}

void ServedLogs::Watch(OnChange on_change) {
  const MutexLock lock(mutex_);
  on_change_ = std::move(on_change);
  if (!on_change_) return;
  for (const auto& [name, entry] : logs_) {
    on_change_(name, entry.served != nullptr);
  }
}

}  // namespace alpheus::service
