// SPDX-License-Identifier: Apache-2.0
// log_history: what must be in a log that several primaries wrote to, one after
// the other or pushing each other aside.
//
// Idea: writers are enlisted when they start, with numbers of the feed of their
// own; each look at the log is judged against all of them and all earlier looks
// (recovery_oracle.h), so that no later look may show less (P-C4).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_LOG_HISTORY_H_
#define ALPHEUS_TOOLS_NEMESIS_LOG_HISTORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tools/nemesis/feed.h"
#include "tools/nemesis/recovery_oracle.h"

namespace alpheus::demo {

class LogHistory {
 public:
  // `feed` must outlive it.
  explicit LogHistory(const Feed* feed) : feed_(*feed) {}

  // A new log, with nothing in it.
  void Clear();

  // First number for the next writer; it may be fed up to kNumbersPerWriter.
  static constexpr uint64_t kNumbersPerWriter = 1 << 20;
  uint64_t DrawFirstNumber();
  // The last LSN that is known to be in the log, acknowledged or seen.
  // `writers`: those whose acknowledgements have been heard since.
  uint64_t LsnFloor(const std::vector<WriterFacts>& writers) const;

  // Judges what was read from the log. `writers`: all since the last final
  // look. A look that is not final comes while they go on.
  // Errors: DataLoss (a violation: the message says all).
  absl::Status Look(const std::vector<WriterFacts>& writers,
                    std::vector<RecoveredRecord> records, bool is_final);

  // Of the last final look.
  const Judgement& judgement() const { return judgement_; }
  // Ring space of all records that were seen.
  uint64_t ring_bytes() const;

 private:
  const Feed& feed_;
  uint64_t next_number_ = 0;
  std::vector<PlacedRecord> survivors_;
  Judgement judgement_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_LOG_HISTORY_H_
