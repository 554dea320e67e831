// SPDX-License-Identifier: Apache-2.0
// log_history: the records that must be in a log with several primaries, one
// after the other or fencing each other.
//
// Idea: writers are registered when they start, with numbers of the feed of
// their own. Each check at the log is judged against all of them and all
// earlier checks (recovery_oracle.h), so that no later check may show less
// (P-C4).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_ORACLES_LOG_HISTORY_H_
#define ALPHEUS_TOOLS_NEMESIS_ORACLES_LOG_HISTORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

class LogHistory {
 public:
  // `feed` must outlive it.
  explicit LogHistory(const Feed* feed) : feed_(*feed) {}

  // Starts with a new, empty log.
  void Clear();

  // Returns the first number for the next writer, which may be fed
  // kNumbersPerWriter records.
  static constexpr uint64_t kNumbersPerWriter = 1 << 20;
  uint64_t DrawFirstNumber();
  // Returns the last LSN that is known to be in the log, acknowledged or seen.
  // `writers`: those whose acknowledgements have been read since.
  uint64_t LsnFloor(const std::vector<WriterFacts>& writers) const;

  // Judges the records read from the log. `writers`: all since the last final
  // check. During a check that is not final they continue.
  // Errors: DataLoss (a violation: the message has all details).
  absl::Status Check(const std::vector<WriterFacts>& writers,
                     std::vector<RecoveredRecord> records, bool is_final);

  // Returns the judgement of the last final check.
  const Judgement& judgement() const { return judgement_; }
  // Returns the ring space of all records seen.
  uint64_t ring_bytes() const;

 private:
  const Feed& feed_;
  uint64_t next_number_ = 0;
  std::vector<PlacedRecord> survivors_;
  Judgement judgement_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ORACLES_LOG_HISTORY_H_
