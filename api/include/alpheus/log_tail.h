// SPDX-License-Identifier: Apache-2.0
// log_tail: follows the durable records of an open log, in the process that
// writes it. From other processes: cluster_tail.h.
//
//   auto tail = log->Tail(alpheus::Lsn(0));   // from the oldest record
//   for (;;) {
//     auto record = (*tail)->Next();
//     if (!record.ok()) return record.status();
//     if (*record) Apply(**record);           // or, with none: not yet
//   }
//
// Guarantees of a tail:
//   LT1. Only durable records are shown, each once, in LSN order, with exactly
//        their bytes. LSNs of aborted records are left out.
//   LT2. Every record that was shown is in every later opening of the log,
//        unless it was cleaned. A tail can continue at LSN + 1 in any process,
//        after any crash.
//   LT3. A tail keeps no record from being cleaned. A record that was cleaned
//        before it was read gives OutOfRange; it is never skipped silently.
// A primary that was overtaken by another one, and does not know it yet, shows
// records up to its own durable LSN: correct ones, but not the newest. After
// Log::ConfirmEpoch a tail shows all that were durable when that call began.
//
// Thread safety: one thread per tail; any number of tails, concurrently with
// any calls of the log.
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

  // Returns the next durable record; nothing if there is none yet. Does not
  // wait: Log::WaitDurable and OnDurable do.
  // Errors: OutOfRange (the record was cleaned: begin again at Log::head_lsn();
  // the records between are gone); DataLoss (it can't be read any more: LSN,
  // offset); Aborted (another primary took over the log's own replica); the
  // log's failure, once every record that is known to be durable was shown.
  absl::StatusOr<std::optional<TailRecord>> Next();

  // Returns the LSN that was durable at the last Next, or at the beginning. All
  // records up to it were shown, or come next.
  Lsn durable_lsn() const { return durable_lsn_; }
  // Returns the LSN at which another tail would continue.
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
