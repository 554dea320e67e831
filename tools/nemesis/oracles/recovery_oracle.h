// SPDX-License-Identifier: Apache-2.0
// recovery_oracle: judges the records that a log returns after its writers were
// killed, paused or cut off.
//
// Idea: the oracle knows the records fed, acknowledged and seen before, and
// none of the log's code. So it has both bounds. No acknowledged record may be
// missing. No record may appear that was not fed; and of each thread only its
// one record in flight may appear without an acknowledgement.
//
// With several writers this holds for each one, also for a fenced one: records
// that it was told are durable must be there.
//
// Invariants checked (numbers are cited in the messages):
//   RO1. Every acknowledged record is there, exactly once, under the LSN of its
//        acknowledgement.
//   RO2. Every record that an earlier recovery returned is there, at the front,
//        under its LSN.
//   RO3. Every record that is there was fed, and has exactly its bytes.
//   RO4. LSNs are an unbroken run.
//   RO5. Exactly the first k records of each thread are there, in order; k is
//        the number of its acknowledgements, or one more.
//   RO6. A writer's records come after all that was acknowledged, or returned,
//        before it started.
//   RO7. One primary per epoch: epochs never fall from LSN to LSN, and all
//        records of an epoch are of one writer.
// Thread safety: pure.
#ifndef ALPHEUS_TOOLS_NEMESIS_ORACLES_RECOVERY_ORACLE_H_
#define ALPHEUS_TOOLS_NEMESIS_ORACLES_RECOVERY_ORACLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

// A record by its number in the feed.
struct PlacedRecord {
  uint64_t lsn = 0;
  uint64_t number = 0;

  bool operator==(const PlacedRecord&) const = default;
};

struct Acknowledgement {
  PlacedRecord record;
  uint64_t thread = 0;
};

// Record that the log returned.
struct RecoveredRecord {
  uint64_t lsn = 0;
  std::string payload;
  uint64_t epoch = 0;  // 0: not known

  bool operator==(const RecoveredRecord&) const = default;
};

struct KillFacts {
  uint64_t threads = 1;
  std::vector<PlacedRecord> survivors;  // of the last recovery, not cleaned
  uint64_t first_number = 0;  // of the records fed to the killed process
  uint64_t fed_count = 0;     // wholly written to its standard input
  std::vector<Acknowledgement> acknowledgements;
  std::vector<RecoveredRecord> recovered;
};

// One process that appended. A process that lost the log and won it again
// counts as another one: records that it had taken were left out.
struct WriterFacts {
  uint64_t threads = 1;
  uint64_t first_number = 0;  // of the records fed to it
  uint64_t first_index = 0;   // in its input, of the first of them
  uint64_t fed_count = 0;     // wholly written to its standard input
  uint64_t lsn_floor = 0;     // the last LSN known before it started
  std::vector<Acknowledgement> acknowledgements;
};

struct HistoryFacts {
  std::vector<PlacedRecord> survivors;  // of the last recovery, not cleaned
  std::vector<WriterFacts> writers;     // fed with different numbers
  // The log was read while they continued: of each thread more records may be
  // there than acknowledgements had been heard.
  bool goes_on = false;
  std::vector<RecoveredRecord> recovered;
};

struct Judgement {
  uint64_t recovered_count = 0;         // of the records fed to the writers
  uint64_t unacknowledged_count = 0;    // of those: without acknowledgement
  uint64_t lost_count = 0;              // RO1, RO2
  uint64_t duplicated_count = 0;        // RO1, RO2
  uint64_t invented_count = 0;          // RO3
  uint64_t out_of_order_count = 0;      // RO4, RO5, RO6, RO7
  std::vector<std::string> violations;  // the first few, for people
  // Records that the next round must find again.
  std::vector<PlacedRecord> survivors;

  bool holds() const {
    return lost_count + duplicated_count + invented_count +
               out_of_order_count ==
           0;
  }
};

Judgement JudgeHistory(const Feed& feed, const HistoryFacts& facts);
// Judges the log of one writer.
Judgement JudgeRecovery(const Feed& feed, const KillFacts& facts);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ORACLES_RECOVERY_ORACLE_H_
