// SPDX-License-Identifier: Apache-2.0
// fed_writer: feeds a running `alpheus append --ack` and listens to it.
//
// Idea: the acknowledgement of a record comes through a pipe before the writer
// goes on, so what was read from the pipe, and what still stands in it when the
// writer is dead, is all that was ever acknowledged.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_FED_WRITER_H_
#define ALPHEUS_TOOLS_NEMESIS_FED_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "tools/nemesis/child_process.h"
#include "tools/nemesis/feed.h"
#include "tools/nemesis/recovery_oracle.h"

namespace alpheus::demo {

struct FeedLimits {
  // Records that take this much ring space are fed at most, so that the ring
  // never gets full.
  uint64_t ring_bytes_max = 0;
  // So many records at most are made that are not acknowledged yet.
  uint64_t unacknowledged_max = std::numeric_limits<uint64_t>::max();
};

class FedWriter {
 public:
  // Feeds records from `first_number` on. All must outlive it.
  FedWriter(ChildProcess* child, const Feed* feed, uint64_t first_number,
            const FeedLimits& limits, const Clock& clock = Clock::Real());

  // Feeds what fits into its input now.
  void FillInput();
  // Feeds, and reads what it says; waits for one of it, but not for longer.
  // False when the writer has closed its output.
  bool ListenAndFeed(int64_t timeout_nanos);
  // Nothing more is made while it is held; what was made is fed.
  void Hold(bool is_held) { is_held_ = is_held; }
  // Nothing more is fed than the rest of a record that is fed in part; then
  // its input ends.
  void EndInput();
  // Reads what it has acknowledged by now, however much that is.
  void ReadUntilNow();
  // What a dead process wrote stays in the pipe until it is read.
  void DrainAfterDeath();
  // Of what was read. Errors: DataLoss (something that is none).
  absl::Status TakeAcknowledgements();

  uint64_t first_number() const { return first_number_; }
  // Wholly written to its standard input.
  uint64_t fed_count() const { return fed_count_; }
  // As of the last TakeAcknowledgements.
  const std::vector<Acknowledgement>& acknowledgements() const {
    return acknowledgements_;
  }
  // When the last one was taken; when this was made, while there is none.
  int64_t last_ack_nanos() const { return last_ack_nanos_; }
  // On standard error.
  const std::string& said() const { return said_; }
  // What it says of itself when it ends well.
  std::optional<uint64_t> durable_lsn() const { return durable_lsn_; }

 private:
  void FillPending();
  bool FeedSome();  // false when the pipe is full, or closed
  void GiveUpFeeding();
  absl::Status TakeLine(const std::string& line);

  ChildProcess& child_;
  const Feed& feed_;
  const Clock& clock_;
  const uint64_t first_number_;
  const FeedLimits limits_;

  bool ends_input_ = false;
  bool is_held_ = false;
  std::string pending_;       // not written to the writer yet
  uint64_t fed_bytes_ = 0;    // written to the writer
  uint64_t whole_bytes_ = 0;  // of the records wholly written
  uint64_t fed_count_ = 0;
  uint64_t made_bytes_ = 0;  // of all records made so far
  uint64_t made_count_ = 0;
  uint64_t made_ring_bytes_ = 0;
  std::deque<uint64_t> unfed_ends_;  // where records not wholly fed end

  std::string heard_;  // lines not taken yet
  std::string said_;
  int64_t last_ack_nanos_ = 0;
  std::optional<uint64_t> durable_lsn_;
  std::vector<Acknowledgement> acknowledgements_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_FED_WRITER_H_
