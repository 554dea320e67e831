// SPDX-License-Identifier: Apache-2.0
// history: what clients gave to the log and what they were told, and whether
// what openings show agrees with it.
//
// Idea: each record has an operation number, from which its bytes follow, so
// that any record can be judged by itself: who wrote it, and whether it may be
// there. A place in the log (an LSN) is *chosen* once a client was told that it
// is durable or an opening has shown it; from then on it never changes, and
// every opening shows it, unless it was cleaned.
//
// What is held (P-B1 of the protocol):
//   P-C1  what was acknowledged is shown by every later opening
//   P-C2  without a hole
//   P-C3  what is shown was completed, with these bytes, in that epoch, once
//   P-C4  what was shown is shown again
//   P-C5  no place is acknowledged for the records of two primaries
//   P-L8  a record that nobody cleaned is not shown as cleaned
//   P-L9  the head is not before one that W media had
//   P-L10 the head is at most behind what was cleaned
//   P-L11 cleaning everything is done only where nothing is open, and refused
//         only where something is; then W media begin behind it, and nothing
//         earlier is ever shown
// Thread safety: one thread.
// References: protocol P-B1, P-B4.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_HISTORY_H_
#define ALPHEUS_TOOLS_SIM_WORLD_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "log/base/ids.h"
#include "tools/sim/world/referee.h"

namespace alpheus::sim {

// Of one record that a client writes. 0: none.
using OperationId = uint64_t;
// One opening of the log, successful or not. 0: none.
using PrimaryNumber = uint32_t;

inline constexpr size_t kPayloadBytesMin = sizeof(OperationId);

// The bytes of the operation's record. `content`: that the client gives it,
// behind the number.
// Requires: they fit.
void FillPayload(OperationId operation, std::span<std::byte> payload,
                 std::span<const std::byte> content = {});

class History {
 public:
  explicit History(Referee& referee) : referee_(referee) {}

  // A record of an opening's answer.
  struct Shown {
    Lsn lsn;
    Epoch epoch;
    bool aborted = false;
    bool cleaned = false;
    std::span<const std::byte> payload;
  };

  PrimaryNumber NewPrimary() { return ++primaries_; }
  // The primary begins to open: it may not know what becomes durable from here
  // on by somebody else, whose epoch is then the later one.
  // On W media the log begins at `durable_head` or behind it.
  void Opens(PrimaryNumber primary, Lsn durable_head = Lsn(0)) {
    before_[primary] = {chosen_end().value, emptied_, durable_head.value};
  }
  // The primary opened its epoch, and shows [head, end).
  void Opened(PrimaryNumber primary, Epoch epoch, Lsn head, Lsn end,
              std::span<const Shown> records);

  // A tail that has `next` before it (0: the head) shows that record.
  void Followed(Lsn next, const Shown& record);
  // It was told that the log begins at `head`, and that `next` is gone.
  void Overtaken(Lsn next, Lsn head);

  // A client of the primary is about to write a record of so many bytes.
  OperationId Begin(PrimaryNumber primary, size_t payload_bytes);
  void HasLsn(OperationId operation, Lsn lsn);
  // Behind the operation's number its payload has these bytes, and only then
  // those that follow from the number.
  void HasContent(OperationId operation, std::vector<std::byte> content) {
    at(operation).content = std::move(content);
  }
  // From here on it may be found.
  void MayBeCompleted(OperationId operation);
  // From here on it may be found as ABORTED.
  void MayBeAborted(OperationId operation);
  // A client was told that all up to `lsn` is durable.
  void Acknowledged(PrimaryNumber primary, Lsn lsn);

  // From here on it may be cleaned.
  // By a client of the primary: its own records, and those that it was opened
  // with; not what another primary wrote at these places since.
  void MayBeCleaned(PrimaryNumber primary, Lsn lsn) {
    cleaned_[lsn.value].insert(primary);
  }
  void MayBeCleanedThrough(PrimaryNumber primary, Lsn lsn) {
    cleaned_through_[primary].insert(lsn.value);
  }
  // One such call was refused, and has done nothing.
  void NotCleanedThrough(PrimaryNumber primary, Lsn lsn);
  // CleanupAll, called when LSN `next` was the next one and `open` the first
  // that was not completed, said that it is done. On W media the log begins at
  // `durable_head` now.
  void Emptied(Lsn next, Lsn open, Lsn durable_head);
  // It was refused.
  void NotEmptied(PrimaryNumber primary, Lsn next, Lsn open);

  // A client may have completed a record with these bytes there, by the primary
  // of that epoch.
  bool WroteThere(Lsn lsn, Epoch epoch,
                  std::span<const std::byte> payload) const;

  bool IsCleaned(Lsn lsn) const { return IsCleaned(lsn.value); }
  // On the medium of that machine the log begins there (P-L10).
  void JudgeHeadOfMedium(int machine, Lsn head);

  uint64_t records_acknowledged() const { return acknowledged_; }
  // The newest in which anything was.
  Epoch epoch_acknowledged() const { return epoch_acknowledged_; }
  // Up to here all places are chosen.
  Lsn chosen_end() const;

 private:
  struct Operation {
    PrimaryNumber primary = 0;
    size_t bytes = 0;
    Lsn lsn = {};  // 0: not known
    bool may_be_completed = false;
    bool may_be_aborted = false;
    std::vector<std::byte> content = {};
  };
  // What lies at an LSN for good.
  struct Choice {
    PrimaryNumber primary = 0;
    OperationId operation = 0;  // 0: not known, or aborted
    bool aborted = false;
    const char* why = "";
  };

  Operation& at(OperationId operation) { return operations_[operation - 1]; }
  // 0: nobody wrote these bytes.
  OperationId WhoWrote(std::span<const std::byte> payload) const;
  bool IsCleaned(uint64_t lsn) const;
  bool IsAborted(uint64_t lsn) const;
  // What was there when an opening began.
  struct Before {
    uint64_t chosen_end = 1;
    uint64_t emptied = 0;
    uint64_t durable_head = 0;
  };

  void JudgeHead(Lsn head, const Before& before);
  // The first one before `head` that nobody cleaned, or `head`.
  uint64_t FirstUncleaned(Lsn head);
  void JudgeRecord(const Shown& record, std::set<OperationId>& seen);
  void Choose(uint64_t lsn, const Choice& choice);
  std::string Describe(uint64_t lsn, const Choice& choice) const;

  Referee& referee_;
  PrimaryNumber primaries_ = 0;
  std::map<PrimaryNumber, Before> before_;
  std::map<uint64_t, PrimaryNumber> by_epoch_;
  std::vector<Operation> operations_;
  std::map<std::pair<PrimaryNumber, uint64_t>, OperationId> by_lsn_;
  std::map<uint64_t, Choice> chosen_;
  std::map<PrimaryNumber, uint64_t> acknowledged_to_;
  // By LSN, and by primary. Who of them means what lies there is seen once that
  // is chosen.
  std::map<uint64_t, std::set<PrimaryNumber>> cleaned_;
  std::map<uint64_t, std::set<PrimaryNumber>> aborted_;
  std::map<PrimaryNumber, std::multiset<uint64_t>> cleaned_through_;
  std::map<PrimaryNumber, uint64_t> opened_end_;
  uint64_t unneeded_ = 0;  // up to here all are chosen and cleaned or aborted
  uint64_t emptied_ = 0;
  uint64_t acknowledged_ = 0;
  std::map<PrimaryNumber, Epoch> epochs_;  // opened
  Epoch epoch_acknowledged_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_HISTORY_H_
