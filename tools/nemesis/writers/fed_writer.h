// SPDX-License-Identifier: Apache-2.0
// fed_writer: feeds a running `alpheus append --ack` and listens to it.
//
// Idea: the acknowledgement of a record comes through a pipe before the writer
// continues. So the bytes read from the pipe, and those left in it when the
// writer is dead, are all acknowledgements ever given.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_WRITERS_FED_WRITER_H_
#define ALPHEUS_TOOLS_NEMESIS_WRITERS_FED_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

struct FeedLimits {
  // Bound on the ring space of fed records, in bytes, so that the ring never
  // fills.
  uint64_t ring_bytes_max = 0;
  // Bound on records that are made and not acknowledged yet.
  uint64_t unacknowledged_max = std::numeric_limits<uint64_t>::max();
};

class FedWriter {
 public:
  // Feeds records from `first_number` on. All arguments must outlive it.
  FedWriter(ChildProcess* child, const Feed* feed, uint64_t first_number,
            const FeedLimits& limits, const Clock& clock = Clock::Real());

  // Feeds as much as its input takes now.
  void FillInput();
  // Feeds it and reads its output; waits for output, at most `timeout_nanos`.
  // Returns false when the writer has closed its output.
  bool ListenAndFeed(int64_t timeout_nanos);
  // Stops making records while held; made ones are fed.
  void Pause(bool is_paused) { is_paused_ = is_paused; }
  // Feeds the rest of a partly fed record; then ends the input.
  void EndInput();
  // Reads everything that it has acknowledged by now.
  void ReadUntilNow();
  // Reads what a dead process left in the pipe.
  void DrainAfterDeath();
  // Parses the acknowledgements read so far. Errors: DataLoss (not an
  // acknowledgement).
  absl::Status ReadAcknowledgements();
  // Takes that no further one of the first `count` records will be
  // acknowledged, so that others are made in their place.
  void Settle(uint64_t count);

  uint64_t first_number() const { return first_number_; }
  // Returns the number of records wholly written to its standard input.
  uint64_t fed_count() const { return fed_count_; }
  // Returns the acknowledgements as of the last ReadAcknowledgements.
  const std::vector<Acknowledgement>& acknowledgements() const {
    return acknowledgements_;
  }
  // Returns the time of the last one, or of construction if there is none.
  int64_t last_ack_nanos() const { return last_ack_nanos_; }
  // Returns its standard error so far.
  const std::string& said() const { return said_; }
  // Returns the durable LSN that it reports at a good end.
  std::optional<uint64_t> durable_lsn() const { return durable_lsn_; }

 private:
  void FillPending();
  // Returns how many of the made records may still be acknowledged.
  uint64_t UnsettledCount() const;
  bool FeedSome();  // false: the pipe is full or closed
  void StopFeeding();
  absl::Status TakeLine(const std::string& line);

  ChildProcess& child_;
  const Feed& feed_;
  const Clock& clock_;
  const uint64_t first_number_;
  const FeedLimits limits_;

  bool ends_input_ = false;
  bool is_paused_ = false;
  std::string pending_;       // not written to the writer yet
  uint64_t fed_bytes_ = 0;    // written to the writer
  uint64_t whole_bytes_ = 0;  // of records wholly written
  uint64_t fed_count_ = 0;
  uint64_t made_bytes_ = 0;  // of all records made so far
  uint64_t made_count_ = 0;
  uint64_t made_ring_bytes_ = 0;
  uint64_t settled_count_ = 0;        // of the first records
  uint64_t acknowledged_beyond_ = 0;  // of those after them
  std::deque<uint64_t> unfed_ends_;   // ends of records not wholly fed

  std::string heard_;  // lines not taken yet
  std::string said_;
  int64_t last_ack_nanos_ = 0;
  std::optional<uint64_t> durable_lsn_;
  std::vector<Acknowledgement> acknowledgements_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_WRITERS_FED_WRITER_H_
