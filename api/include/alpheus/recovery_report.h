// SPDX-License-Identifier: Apache-2.0
// recovery_report: the findings of opening a log, for people and for tests.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_RECOVERY_REPORT_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_RECOVERY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "log/base/ids.h"

namespace alpheus {

// Way in which the log ended. (A corrupt log is an error of Open, not a
// report.)
enum class RecoveryVerdict {
  kComplete,  // nothing was cut off
  // The records from torn_lsn on are cut: the first one can't be read, and
  // nothing proves that it was ever durable. It was never acknowledged, or it
  // was damaged before it was proven. The next force, or an idle interval
  // (LogOptions::idle_force_us), proves a record.
  kTornTail,
};

// Moments of the opening of a replicated log, in nanoseconds of the clock of
// Deadline; all 0 for a local log.
struct OpeningMoments {
  int64_t began_ns = 0;      // Log::Open was called, or a candidate was to open
  int64_t promised_ns = 0;   // enough members had promised and reported
  int64_t chosen_ns = 0;     // it was chosen which records the log has
  int64_t installed_ns = 0;  // enough members had these records and the epoch
  int64_t opened_ns = 0;     // the log could be used; 0: nobody was to use it
};

struct RecoveryReport {
  RecoveryVerdict verdict = RecoveryVerdict::kComplete;
  Uuid log_id;
  Epoch epoch;           // opened now
  Epoch previous_epoch;  // of the last opening; 0 for a new log
  bool was_closed_cleanly = false;
  // Log::ChangeMembers: the process that has the log open made the change, and
  // its log goes on in `epoch`.
  bool was_running = false;
  Lsn head_lsn;  // first recovered LSN, or end_lsn + 1
  Lsn end_lsn;   // last recovered LSN; head_lsn - 1 if there is none
  // First LSN that the opening read: head_lsn, or a later one in a log of
  // many MiB. Records before it were known to be persisted. They are
  // recovered, but are read and checked only when they are shown, and are not
  // counted below.
  Lsn read_from_lsn;
  uint64_t records = 0;  // recovered, not cleaned, not aborted
  uint64_t cleaned_records = 0;
  uint64_t aborted_records = 0;
  uint64_t payload_bytes = 0;  // of `records`

  // With kTornTail: the first LSN that is cut, its offset (bytes from the start
  // of the region), and how many completed records after it are cut too.
  Lsn torn_lsn;
  uint64_t torn_offset = 0;
  uint64_t torn_completed_records = 0;

  // Copies, lines and PADs that could not be read and were rewritten.
  std::vector<std::string> repairs;

  // Members of a replicated log that are not in the epoch, with the reason.
  // They get no new record until they resync or the log is opened again.
  std::vector<std::string> absent_members;

  // Reason why the adapter writes to a shadow of the own replica in memory,
  // which is then copied to the replica; empty: no shadow, or no own replica.
  std::string shadow;

  // Warning about the medium for the operator; empty: none.
  std::string medium_warning;

  // Reason why the cluster's membership service did not number this epoch, as
  // far as known, or what else an operator should know of it; empty: nothing,
  // or the cluster is static.
  std::string membership_warning;

  // Warning about numbers of epochs that come to their end; empty: they do not.
  std::string ballot_warning;

  OpeningMoments moments;

  // One line for people.
  std::string ToString() const;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_RECOVERY_REPORT_H_
