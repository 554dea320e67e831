// SPDX-License-Identifier: Apache-2.0
// access: says whether a caller may do something with a log now.
//
// Idea: a caller shows a token. A list says which role each token has for which
// logs, and until when. The list is replaced as a whole while calls go on. A
// stream asks once at its beginning, and again at each message. That costs one
// load of an atomic number, unless the list has been replaced since.
//
//   role     append               read                 admin
//   calls    OpenClient, Append   Read, Tail           Cleanup
//            ResumeClient         WaitDurable          CloseClient
//            CloseClient          GetExposure          ListClients
//            ListClients          DescribeDurability   Elect, Drain, Scrub
//            AppendStream         ListEpochs           Replace, Reconfigure
//            Resolve, Force                            CreateLog, DeleteLog
//            GetStatus, ListLogs, reflection: any of them; health: no token
//
// ListLogs shows the logs that the token is for.
//
// Invariants:
//   ACS1. What is done, was allowed by the list that was the latest when the
//         call, or this message of its stream, came: the token is in the list,
//         has not expired, and has one of the call's roles for this log.
//   ACS2. A stream whose token may no more takes nothing of what comes then,
//         and ends. What it has admitted before is answered first.
//   ACS3. A stream of a caller without a token ends before it has begun: it
//         would wait for ever.
//   ACS4. A token that is compared with the list takes the same time, however
//         much of it is right.
//   ACS5. A token with rates has one meter at a node for all its streams and
//         calls (RTM1, rate_meter.h). A new list leaves the meter of a token
//         whose rates stay.
// Thread safety: Access: all members by many threads. Permit: one thread at a
// time.
// References: docs/design/service.md; RFC 6750 (bearer tokens).
#ifndef ALPHEUS_API_GRPC_ACCESS_ACCESS_H_
#define ALPHEUS_API_GRPC_ACCESS_ACCESS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/grpc/access/rate_meter.h"
#include "api/grpc/access/token_file.h"
#include "log/base/clock.h"
#include "log/base/mutex.h"
#include "log/base/wall_clock.h"
#include "quorum/members/cluster_key.h"

namespace alpheus::rpc {

// Digest of the token that a caller has shown; empty: none.
using Shown = std::optional<quorum::Digest>;

class Access {
 public:
  // Asks for tokens if there is a list. Rates go by `steady`. Both clocks must
  // outlive it.
  Access(std::optional<std::vector<TokenEntry>> entries, const WallClock& clock,
         const Clock& steady = Clock::Real());

  // Whether callers need a token; else all may do everything.
  bool asks_for_tokens() const { return asks_for_tokens_; }
  // Returns the digests of the list, also of tokens that have expired. A caller
  // that is to prove its token, and not to show it, is found by them
  // (api/remote/token_proof.h).
  std::vector<quorum::Digest> Digests() const;
  // Takes another list. Requires: asks_for_tokens().
  void Replace(std::vector<TokenEntry> entries);

  // Returns OK if the caller has one of the roles for this log. Errors:
  // Unauthenticated (no token, or one that is unknown or has expired);
  // PermissionDenied (none of the roles, or not for this log).
  absl::Status Check(const Shown& shown, Roles roles,
                     std::string_view log) const;
  // Returns OK if the caller has a token. Errors: Unauthenticated.
  absl::Status CheckKnown(const Shown& shown) const;
  // Takes a request to append, with so many bytes, from the rates of the
  // caller's token. Requires: Check has returned OK. Errors: ResourceExhausted
  // (they are used up now; nothing was taken).
  absl::Status Take(const Shown& shown, uint64_t bytes) const;

 private:
  friend class Permit;
  struct Listed {
    TokenEntry entry;
    std::shared_ptr<RateMeter> meter;  // null: no limit
  };
  using List = std::shared_ptr<const std::vector<Listed>>;

  // Returns a list whose tokens keep the meters that they have in `before`
  // (ACS5).
  static List Make(std::vector<TokenEntry> entries, const List& before);
  // Returns what the list says of the token. Valid as long as the list. Errors:
  // as CheckKnown.
  absl::StatusOr<const Listed*> Find(const Shown& shown,
                                     const List& list) const;
  // Returns what the list says of a token that may do this now. Errors: as
  // Check.
  absl::StatusOr<const Listed*> FindAllowed(const Shown& shown, Roles roles,
                                            std::string_view log,
                                            const List& list) const;
  List list() const;

  const bool asks_for_tokens_;
  const WallClock& clock_;
  const Clock& steady_;
  std::atomic<uint64_t> edition_ = 0;  // of the list
  mutable Mutex mutex_;
  List list_ ABSL_GUARDED_BY(mutex_);
};

// Says again and again whether a stream may go on.
class Permit {
 public:
  // `access` must outlive it.
  Permit(const Access& access, const Shown& shown, Roles roles)
      : access_(access), shown_(shown), roles_(roles) {}

  // Returns OK if the caller has a token, of any kind. A stream that has not
  // begun asks for no more. Errors: as Access::CheckKnown.
  absl::Status CheckKnown() const { return access_.CheckKnown(shown_); }
  // Begins with this log. Errors: as Access::Check.
  absl::Status Enter(const std::string& log);
  // Returns whether it may still. Errors: as Access::Check. Requires: Enter has
  // returned OK.
  absl::Status Recheck();
  // Returns whether Take may ever refuse. Requires: as Recheck.
  bool has_rates() const { return meter_ != nullptr; }
  // Takes a request to append, with so many bytes, from the rates of the token.
  // Returns false, and takes nothing, if they are used up now. Requires: as
  // Recheck.
  bool Take(uint64_t bytes);

 private:
  absl::Status Look(uint64_t edition);

  const Access& access_;
  const Shown shown_;
  const Roles roles_;
  std::string log_;
  uint64_t edition_ = 0;  // in which the list was looked at last
  int64_t end_s_ = 0;     // the caller may until then
  std::shared_ptr<RateMeter> meter_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_ACCESS_ACCESS_H_
