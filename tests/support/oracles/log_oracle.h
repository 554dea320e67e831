// SPDX-License-Identifier: Apache-2.0
// log_oracle: what a log may and must give back after a crash, from what its
// clients asked and were told.
//
// Idea: two bounds. Lower: every record that was acknowledged, and not
// cleaned, comes back with its bytes. Upper: nothing comes back that was not
// completed with exactly these bytes, and the head is never beyond what was
// cleaned. Calls that run when the crash comes are noted before they start, so
// that both outcomes are legal for them and no third.
//
// Invariants (cited by failures):
//   LOR1. The recovered records are an unbroken run of LSNs from the head
//         (P-C2).
//   LOR2. The run reaches the highest LSN that was acknowledged (P-C1).
//   LOR3. Each record in it was completed with exactly its bytes, or was given
//         up and comes back as ABORTED (P-C3).
//   LOR4. Every LSN below the head, and every record marked as cleaned, was
//         asked to be cleaned or was given up (P-L8, P-L9).
//   LOR5. Records that CleanupAll cleaned never come back (P-L11).
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_LOG_ORACLE_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_LOG_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "log/base/ids.h"

namespace alpheus::testing {

// A log as a recovery gave it back.
struct RecoveredLog {
  struct Record {
    bool aborted = false;
    bool cleaned = false;
    std::span<const std::byte> payload;  // in the region

    bool SameAs(const Record& other) const;
  };

  Lsn head;
  std::vector<Record> records;  // records[i] has LSN head + i

  Lsn next() const { return head + records.size(); }
  std::string Describe() const;
};

class LogOracle {
 public:
  // An append whose LSN the caller doesn't know yet.
  using Ticket = uint32_t;

  // Reserved, not completed: may not come back.
  void NoteReserved(Lsn lsn);
  // Called before the call that completes or gives up the record.
  void NoteCompleting(Lsn lsn, std::string payload);
  void NoteAborting(Lsn lsn);

  // Called before an append. From here on a record with this payload may come
  // back, at one LSN that nobody else was given.
  Ticket NoteAppending(std::string payload);
  void NoteAppended(Ticket ticket, Lsn lsn);
  // The append took no LSN: its record may not come back.
  void NoteRefused(Ticket ticket);

  // Everything up to `lsn` was acknowledged as durable.
  void NoteDurable(Lsn lsn);

  // Called before a cleanup of [first, last].
  void NoteCleaning(Lsn first, Lsn last);
  // No cleanup that was asked so far reaches `next` or beyond.
  void NoteCleaningEndsBefore(Lsn next);
  // CleanupAll returned OK when `next` was the next LSN.
  void NoteAllCleaned(Lsn next);

  // The clients saw this recovery: from now on it is what must come back, and
  // calls that were interrupted are over.
  void NoteRecovered(const RecoveredLog& log);

  // Empty if `log` is legal, else what is wrong with it.
  std::string Check(const RecoveredLog& log) const;

  // Stands for everything that Check depends on.
  uint64_t Digest() const;
  std::string Describe() const;

  Lsn durable_lsn() const { return durable_lsn_; }

 private:
  enum class State : uint8_t {
    kUnknown,    // perhaps an append that still runs
    kReserved,   // may not come back
    kCompleted,  // comes back with its payload or not at all
    kAborted,    // comes back as aborted or not at all
  };
  struct Entry {
    State state = State::kUnknown;
    bool cleaning = false;
    std::string payload;
  };
  struct Append {
    Ticket ticket;
    std::string payload;
  };

  Entry& At(Lsn lsn);
  const Entry* Find(Lsn lsn) const;
  std::string CheckHead(Lsn head) const;
  std::string CheckRecord(Lsn lsn, const RecoveredLog::Record& record,
                          std::vector<bool>* used_appends) const;

  std::vector<Entry> entries_;  // entries_[i] has LSN i + 1
  std::vector<Append> appends_;
  Ticket next_ticket_ = 0;
  Lsn durable_lsn_;
  Lsn head_min_{1};
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_LOG_ORACLE_H_
