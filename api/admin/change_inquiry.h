// SPDX-License-Identifier: Apache-2.0
// change_inquiry: judges, by the repeated words of the nodes, what has become
// of a change of the members that a primary was asked for.
//
// Idea: each round brings a word of every node. The word of the primary counts;
// a node without a primary says that nobody is there. Several processes may
// take themselves for the primary: then the one with the latest epoch is
// believed, and a change that one of them has made is made.
//
//   made       the report, once newcomers have joined, and others had their
//              time
//   refused,   an error that says what the log has now
//   cut off
//   nobody     there is no primary that can: the caller opens the log itself
//   unknown    an error, once the deadline has passed
//
// Invariants:
//   CIQ1. The result is `nobody` only if no node can be the primary's any more;
//         or if none has begun the change by `begun_by`; or if the primary that
//         had begun has said nothing for longer than a change may take.
//   CIQ2. If a change was begun, and nothing is known of it at the deadline,
//         the result is `unknown`. Such a change is never said to be not made.
//   CIQ3. A change that was said to be made stays made.
// Thread safety: one thread. Nothing blocks.
// References: ask_primary.h; ChangeWord of messages.h.
#ifndef ALPHEUS_API_ADMIN_CHANGE_INQUIRY_H_
#define ALPHEUS_API_ADMIN_CHANGE_INQUIRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/recovery_report.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

struct ChangeInquiryOptions {
  std::string log_name;
  Uuid log_id;
  // Somebody must have begun the change by then.
  Deadline begun_by;
  // Deadline of the change, newcomers' copies included.
  Deadline deadline;
  // Nanoseconds for which members that are no newcomers are waited for, once
  // the change is made.
  int64_t gather_ns = 0;
};

// How it ended, unless by an error.
struct AskedPrimary {
  // The report of the epoch with the change. Not set: nobody can make it while
  // the log runs.
  std::optional<RecoveryReport> made = std::nullopt;
  // Node whose process has the log open and can't make the change, since that
  // node's replica does not stay. Not set: there is none, or the change is
  // made.
  std::optional<NodeId> leaving = std::nullopt;
};

class ChangeInquiry {
 public:
  // Nanoseconds without a primary after which one that had begun is taken for
  // gone. A primary tries once a second to reach its node
  // (RegionClaimOptions::retry_ns).
  static constexpr int64_t kGoneNanos = 2'000'000'000;
  // The same while some node may still be the primary's. A change is over by
  // then in any case (drain_ns and open_ns of SuccessionOptions, and the time
  // to say so).
  static constexpr int64_t kSilentNanos = 10'000'000'000;

  // A node's answer of the last round.
  struct Answer {
    std::optional<recovery::ChangeState> said;
    // Why it said nothing; OK: it does not answer yet.
    absl::Status failure;
  };

  // `asked` is what the nodes are told; answers come in the order of its peers.
  ChangeInquiry(ChangeInquiryOptions options, const recovery::AskChange& asked);

  // Takes what each node said in one round, and judges. Returns nothing if the
  // nodes are to be asked again. Requires: as many answers as peers. Errors:
  // those of the primary; Unavailable (unknown, or cut off).
  std::optional<absl::StatusOr<AskedPrimary>> Take(std::vector<Answer> answers,
                                                   int64_t now);

 private:
  const recovery::ChangeState* Find(recovery::ChangeWord word) const;
  const recovery::ChangeState* FindEnd() const;
  bool IsNobodyLeft(int64_t now) const;
  std::optional<NodeId> Leaving() const;
  bool Misses(const recovery::ChangeState& made) const;
  RecoveryReport Report() const;
  absl::Status NotMade(const recovery::ChangeState& said) const;
  absl::Status Unknown() const;
  std::string Answers() const;

  const ChangeInquiryOptions options_;
  const recovery::AskChange asked_;
  std::vector<Answer> answers_;                // of this round
  std::optional<int64_t> begun_at_;            // when a primary said so last
  std::optional<recovery::ChangeState> made_;  // as it said last
  int64_t made_at_ = 0;                        // when it said so
  int64_t gathers_until_ = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_CHANGE_INQUIRY_H_
