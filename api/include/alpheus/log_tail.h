// SPDX-License-Identifier: Apache-2.0
// log_tail: follows the durable records of an open log, in the process that
// writes it. Of a log that other nodes keep: cluster_tail.h.
//
//   auto tail = log->Tail(alpheus::Lsn(0));   // from the oldest record
//   for (;;) {
//     auto record = (*tail)->Next();
//     if (!record.ok()) return record.status();
//     if (*record) Apply(**record);           // or, with none: not yet
//   }
//
// What a tail may promise:
//   LT1. Only durable records, each once, in LSN order, with exactly their
//        bytes. LSNs of aborted records are left out.
//   LT2. What was shown is in every later opening of the log, unless it was
//        cleaned. A tail can go on from LSN + 1 in any process, after any
//        crash.
//   LT3. A tail keeps nothing from being cleaned. What was cleaned before it
//        was read is OutOfRange, never passed over in silence.
// A primary that was overtaken by another one, and does not know it yet, shows
// records up to its own durable LSN: right ones, but not the newest.
//
// Thread safety: one thread per tail; any number of tails, beside any calls of
// the log.
// References: protocol P-A1, P-C1, P-C4, P-H23.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_LOG_TAIL_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_LOG_TAIL_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "alpheus/tail_record.h"
#include "log/base/ids.h"

namespace alpheus {

class Log;
struct TailPlace;

class LogTail {
 public:
  ~LogTail();
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;

  // The next durable record; nothing if there is none yet. Does not wait:
  // Log::WaitDurable and OnDurable do.
  // Errors: OutOfRange (it was cleaned: begin anew at Log::head_lsn(), what
  // lies between is gone); DataLoss (it can't be read any more: LSN, offset);
  // Aborted (the log's own replica was given up for another primary); and, once
  // all that is known to be durable was shown, why the log failed.
  absl::StatusOr<std::optional<TailRecord>> Next();

  // What was durable at the last Next, or at the beginning: all records up to
  // it were shown, or come next.
  Lsn durable_lsn() const { return durable_lsn_; }
  // From where another tail would go on.
  Lsn next_lsn() const { return next_lsn_; }

 private:
  friend class Log;
  LogTail(Log& log, Lsn from);

  Log& log_;
  const std::unique_ptr<TailPlace> place_;
  Lsn durable_lsn_;
  Lsn next_lsn_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_LOG_TAIL_H_
