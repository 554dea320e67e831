// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/access.h"

#include <algorithm>
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
               const WallClock& clock, const Clock& steady)
    : asks_for_tokens_(entries.has_value()), clock_(clock), steady_(steady) {
  if (entries) list_ = Make(*std::move(entries), nullptr);
}

Access::List Access::Make(std::vector<TokenEntry> entries, const List& before) {
  auto list = std::make_shared<std::vector<Listed>>();
  for (TokenEntry& entry : entries) {
    Listed& listed = list->emplace_back();
    listed.entry = std::move(entry);
    const Rates& rates = listed.entry.rates;
    if (!rates.is_limited()) continue;
    if (before != nullptr) {
      const auto same = std::ranges::find_if(*before, [&](const Listed& one) {
        return one.entry.sha256 == listed.entry.sha256 &&
               one.meter != nullptr && one.meter->rates() == rates;
      });
      if (same != before->end()) listed.meter = same->meter;
    }
    if (listed.meter == nullptr) {
      listed.meter = std::make_shared<RateMeter>(rates);
    }
  }
  return list;
}

void Access::Replace(std::vector<TokenEntry> entries) {
  ALPHEUS_CHECK(asks_for_tokens_, "a list is replaced by a list");
  {
    const MutexLock lock(mutex_);
    list_ = Make(std::move(entries), list_);
  }
  // Behind the list: a permit that sees the number sees the list.
  edition_.fetch_add(1, std::memory_order_release);
}

std::vector<quorum::Digest> Access::Digests() const {
  std::vector<quorum::Digest> digests;
  const List list = this->list();
  if (list == nullptr) return digests;
  for (const Listed& listed : *list) digests.push_back(listed.entry.sha256);
  return digests;
}

Access::List Access::list() const {
  const MutexLock lock(mutex_);
  return list_;
}

absl::StatusOr<const Access::Listed*> Access::Find(const Shown& shown,
                                                   const List& list) const {
  if (!shown) {
    return absl::UnauthenticatedError(
        "the call has no token. Send one as metadata, `authorization: Bearer "
        "TOKEN`");
  }
  const Listed* found = nullptr;
  // All of them, whichever it is (ACS4).
  for (const Listed& listed : *list) {
    if (quorum::AreSame(listed.entry.sha256, *shown)) found = &listed;
  }
  if (found == nullptr) {
    return absl::UnauthenticatedError(
        "the token is not known here. It may have been revoked: ask for a new "
        "one");
  }
  ALPHEUS_RETURN_IF_ERROR(CheckExpiry(found->entry, clock_));
  return found;
}

absl::StatusOr<const Access::Listed*> Access::FindAllowed(
    const Shown& shown, Roles roles, std::string_view log,
    const List& list) const {
  ALPHEUS_ASSIGN_OR_RETURN(const Listed* const listed, Find(shown, list));
  ALPHEUS_RETURN_IF_ERROR(CheckRole(listed->entry, roles));
  ALPHEUS_RETURN_IF_ERROR(CheckLog(listed->entry, log));
  return listed;
}

absl::Status Access::Check(const Shown& shown, Roles roles,
                           std::string_view log) const {
  if (!asks_for_tokens_) return absl::OkStatus();
  return FindAllowed(shown, roles, log, list()).status();
}

absl::Status Access::CheckKnown(const Shown& shown) const {
  if (!asks_for_tokens_) return absl::OkStatus();
  return Find(shown, list()).status();
}

absl::Status Access::Take(const Shown& shown, uint64_t bytes) const {
  if (!asks_for_tokens_) return absl::OkStatus();
  const List list = this->list();
  ALPHEUS_ASSIGN_OR_RETURN(const Listed* const listed, Find(shown, list));
  if (listed->meter == nullptr) return absl::OkStatus();
  if (listed->meter->Take(bytes, steady_.NowNanos())) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("token \"", listed->entry.name,
                   "\" has used up its rate at this node for now. Nothing was "
                   "written; send the request again later"));
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

bool Permit::Take(uint64_t bytes) {
  return meter_ == nullptr || meter_->Take(bytes, access_.steady_.NowNanos());
}

absl::Status Permit::Look(uint64_t edition) {
  const Access::List list = access_.list();
  ALPHEUS_ASSIGN_OR_RETURN(const Access::Listed* const listed,
                           access_.FindAllowed(shown_, roles_, log_, list));
  end_s_ = listed->entry.expires_s;
  meter_ = listed->meter;
  edition_ = edition;
  return absl::OkStatus();
}

}  // namespace alpheus::rpc
