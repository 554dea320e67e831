// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/access.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::rpc {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

absl::Status CheckExpiry(const TokenEntry& entry, const WallClock& clock) {
  if (entry.expires_s == kNever) return absl::OkStatus();
  if (clock.NowSeconds() < entry.expires_s) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "token \"", entry.name, "\" has expired. Ask for a new one"));
}

absl::Status CheckRole(const TokenEntry& entry, Roles roles) {
  if (entry.roles.Meets(roles)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("token \"", entry.name, "\" has the role ",
                   entry.roles.ToString(), ", and this call takes ",
                   roles.ToString(), ". Ask for a token with that role"));
}

absl::Status CheckLog(const TokenEntry& entry, std::string_view log) {
  if (entry.is_for_all_logs || entry.logs.contains(std::string(log))) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("token \"", entry.name, "\" is not for log ",
                   absl::string_view(log.data(), log.size()),
                   ". Ask for a token for that log"));
}

}  // namespace

Access::Access(std::optional<std::vector<TokenEntry>> entries,
               const WallClock& clock)
    : asks_for_tokens_(entries.has_value()), clock_(clock) {
  if (entries) {
    entries_ = std::make_shared<std::vector<TokenEntry>>(*std::move(entries));
  }
}

void Access::Replace(std::vector<TokenEntry> entries) {
  ALPHEUS_CHECK(asks_for_tokens_, "a list is replaced by a list");
  auto next =
      std::make_shared<const std::vector<TokenEntry>>(std::move(entries));
  {
    const MutexLock lock(mutex_);
    entries_ = std::move(next);
  }
  // Behind the list: a permit that sees the number sees the list.
  edition_.fetch_add(1, std::memory_order_release);
}

Access::Entries Access::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

absl::StatusOr<const TokenEntry*> Access::Find(const Shown& shown,
                                               const Entries& entries) const {
  if (!shown) {
    return absl::UnauthenticatedError(
        "the call has no token. Send one as metadata, `authorization: Bearer "
        "TOKEN`");
  }
  const TokenEntry* found = nullptr;
  // All of them, whichever it is (ACS3).
  for (const TokenEntry& entry : *entries) {
    if (quorum::AreSame(entry.sha256, *shown)) found = &entry;
  }
  if (found == nullptr) {
    return absl::UnauthenticatedError(
        "the token is not known here. It may have been revoked: ask for a new "
        "one");
  }
  ALPHEUS_RETURN_IF_ERROR(CheckExpiry(*found, clock_));
  return found;
}

absl::StatusOr<int64_t> Access::FindEnd(const Shown& shown, Roles roles,
                                        std::string_view log) const {
  const Entries list = entries();
  ALPHEUS_ASSIGN_OR_RETURN(const TokenEntry* const entry, Find(shown, list));
  ALPHEUS_RETURN_IF_ERROR(CheckRole(*entry, roles));
  ALPHEUS_RETURN_IF_ERROR(CheckLog(*entry, log));
  return entry->expires_s;
}

absl::Status Access::Check(const Shown& shown, Roles roles,
                           std::string_view log) const {
  if (!asks_for_tokens_) return absl::OkStatus();
  return FindEnd(shown, roles, log).status();
}

absl::Status Access::CheckKnown(const Shown& shown) const {
  if (!asks_for_tokens_) return absl::OkStatus();
  return Find(shown, entries()).status();
}

absl::Status Permit::Enter(const std::string& log) {
  if (!access_.asks_for_tokens()) return absl::OkStatus();
  log_ = log;
  return Look(access_.edition_.load(std::memory_order_acquire));
}

absl::Status Permit::Recheck() {
  if (!access_.asks_for_tokens()) return absl::OkStatus();
  const uint64_t edition = access_.edition_.load(std::memory_order_acquire);
  const bool is_over =
      end_s_ != kNever && access_.clock_.NowSeconds() >= end_s_;
  if (edition != edition_ || is_over) return Look(edition);
  return absl::OkStatus();
}

absl::Status Permit::Look(uint64_t edition) {
  ALPHEUS_ASSIGN_OR_RETURN(end_s_, access_.FindEnd(shown_, roles_, log_));
  edition_ = edition;
  return absl::OkStatus();
}

}  // namespace alpheus::rpc
