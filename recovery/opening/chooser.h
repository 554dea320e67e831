// SPDX-License-Identifier: Apache-2.0
// chooser: chooses the one log that is kept, from the reports of the replicas.
// A log on one machine has no reports: its scan decides (local_opening.h).
//
// Idea: the highest log epoch E among the reports ranks first: it was installed
// only on logs that held everything durable before it (P-H3). Its epoch table
// says which epoch owns which LSN. So records of older epochs can be merged
// with those of E, and histories never mix (P-H8, P-H13). From the head on each
// LSN is judged by the two tables of P-A4.4 (kReportRows and kCountRows of
// chooser.cc): the first weighs each report (a holder, a nack, a contradiction,
// or nothing), the second decides by the counts (keep, cut, wait, or an error).
//
// Two configurations matter for a blank replica. Its own configuration does not
// name it: so it is blank. If E's names it, it is a newcomer, and its row is
// that of a repairing replica. If E's does not name it either, it counts for
// nothing.
//
// Why a replica with a log_epoch below E nacks every LSN from start(E) on, the
// first one that E owns: it never acknowledged any of them, whatever its ring
// holds. So it gives a nack even if it is blank, repairing, or has a broken
// record there. (An opening that was cut off leaves such a record: it
// was writing records of E over old ones beyond the chosen end.) One case gives
// nothing: the whole record of E is there, although the replica never installed
// E. A resync that was cut off leaves it, and the replica has neither
// acknowledged nor denied it.
//
// Reports name records only from their starts on (STR4 of state_report.h).
// Before its start a replica has all records, of the epochs that own them in
// its own table. So it has the log's, up to where the owners differ from those
// of E's table: its *shared place* (SharedPlace). The last shared place of all
// that count is where choosing begins; all before it is kept.
//
// Why nothing is missed there. The replica whose shared place is the last one
// holds each LSN from the head to it, so that the tables keep each. From that
// place on each report names what it has, or has there what E's table gives to
// other owners: that counts as a nack, named or not. For the owners of two
// tables never agree again once they differ, and a replica of E has E's table.
// Chains of two places are never compared: only records that are named, up to
// the place where choosing begins.
//
// Invariants:
//   CH1. Every cut has N - W + 1 nacks of distinct, fenced replicas. None of
//        them is suspect; a blank one nacks only what it never acknowledged
//        (P-INV-2, P-H16).
//   CH2. The end is not before that of any report with log_epoch E (P-INV-1).
//   CH3. The chain of the kept records is unbroken, from the value at the place
//        where choosing begins through every later start in E's table
//        (P-INV-8).
//   CH4. An LSN that can't be decided gives an error or a wait, never a shorter
//        log (P-C6 of the protocol). An empty log is an end like any other
//        (P-INV-10).
//   CH5. Reports that no replicas of one log can give are an error, whatever
//        they are: they came from another process. So a kept run lies within a
//        lap of the head, with a line for each record, and each holder of an
//        LSN from the place where choosing began on names its record.
// Thread safety: pure.
// References: protocol P-A4.4, P-H1 to P-H4, P-H8 to P-H10, P-H12, P-H13, P-H16
// to P-H18, P-H25.
#ifndef ALPHEUS_RECOVERY_OPENING_CHOOSER_H_
#define ALPHEUS_RECOVERY_OPENING_CHOOSER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// A set of reports, as bits: bit i is the i-th report that was given to Choose.
using ReportSet = uint32_t;
constexpr bool Contains(ReportSet set, size_t index) {
  return (set >> index & 1) != 0;
}

// Bytes of the ring.
struct KeptBytes {
  RingOffset begin;
  RingOffset end;

  bool operator==(const KeptBytes&) const = default;
};

// A run of kept LSNs of one epoch that the same replicas hold.
struct KeptRun {
  Lsn first;
  Lsn end;  // one past the last
  Epoch epoch;
  ReportSet holders = 0;  // holders of the chosen records; never empty
  // Set for LSNs before the place where choosing began: records and PADs lie
  // there, and not every holder names them.
  std::optional<KeptBytes> unread = std::nullopt;

  bool operator==(const KeptRun&) const = default;
};

enum class Outcome {
  kChosen,
  kWait,  // more replicas must report; `reason` says why
};

struct Decision {
  Outcome outcome = Outcome::kWait;
  std::string reason;           // why to wait
  Epoch epoch;                  // E
  EpochTable table;             // of E
  Configuration configuration;  // of E: names the members
  // Reports of incarnations that `configuration` names, without blank ones.
  ReportSet members = 0;
  ReportSet counts = 0;     // of these, without suspect ones
  ReportSet newcomers = 0;  // named, but blank: they never installed an epoch

  // Set for kChosen:
  LogPosition head;
  LogPosition chosen_from;    // the head, or the last shared place
  LogPosition end;            // one past the last kept record
  std::vector<KeptRun> kept;  // unbroken from head to end
  ReportSet nacks = 0;        // nacks of end.lsn
  // Shared place of each report, in their order; the head if it is not after
  // the head, or if the report does not count.
  std::vector<LogPosition> shared;
};

// Returns the configuration of the highest log epoch among reports that are not
// blank; nullptr if all are blank.
const Configuration* NewestConfiguration(std::span<const StateReport> reports);

// Chooses the log. Errors, each with node, epoch, LSN, what was seen and
// expected, and remedy:
//   InvalidArgument     impossible quorums, two reports of one replica
//   FailedPrecondition  every replica reported and too few know; or another
//                       configuration holds
//   DataLoss            an acknowledged record can be read nowhere; reports
//                       contradict each other; the chain is broken
absl::StatusOr<Decision> Choose(const quorum::QuorumSizes& sizes,
                                std::span<const StateReport> reports);

// Returns the chosen record at an LSN of `run`. Requires: the run is not
// unread.
const ReportedRecord& RecordAt(std::span<const StateReport> reports,
                               const KeptRun& run, Lsn lsn);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_CHOOSER_H_
