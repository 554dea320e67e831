// SPDX-License-Identifier: Apache-2.0
// history: records what clients wrote and were told, and checks that openings
// agree with it.
//
// Idea: each record has an operation number, from which its bytes follow. So
// any record can be judged alone: who wrote it, and whether it may be there. A
// place in the log (an LSN) is *chosen* once a client was told that it is
// durable or an opening has shown it. From then on it never changes, and every
// opening shows it, unless it was cleaned.
//
// Checked (P-B1 of the protocol):
//   P-C1  what was acknowledged is shown by every later opening
//   P-C2  without a hole
//   P-C3  each record shown was completed once, with these bytes, in that epoch
//   P-C4  what was shown is shown again
//   P-C5  no place is acknowledged for the records of two primaries
//   P-L8  a record that nobody cleaned is not shown as cleaned
//   P-L9  the head is not before one that W media had
//   P-L10 the head is at most after the last cleaned record
//   P-L11 cleaning everything is done only where nothing is open, and refused
//         only where something is; then W media begin after it, and nothing
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
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

// Number of one record that a client writes. 0: none.
using OperationId = uint64_t;
// Number of one opening of the log, successful or not. 0: none.
using PrimaryNumber = uint32_t;

inline constexpr size_t kPayloadBytesMin = sizeof(OperationId);

// Fills in the bytes of the operation's record. `content`: bytes after the
// number that the client gives.
// Requires: they fit.
void FillPayload(OperationId operation, std::span<std::byte> payload,
                 std::span<const std::byte> content = {});

class History {
 public:
  explicit History(Oracle& oracle) : oracle_(oracle) {}

  // Record that an opening shows.
  struct Shown {
    Lsn lsn;
    Epoch epoch;
    bool aborted = false;
    bool cleaned = false;
    std::span<const std::byte> payload;
  };

  PrimaryNumber NewPrimary() { return ++primaries_; }
  // Notes that the primary begins to open. It may not know what becomes durable
  // from here on under another primary, whose epoch is then the later one. On W
  // media the log begins at `durable_head` or after it.
  void Opens(PrimaryNumber primary, Lsn durable_head = Lsn(0)) {
    before_[primary] = {chosen_end().value, emptied_, durable_head.value};
  }
  // Judges an opening that succeeded and shows [head, end).
  void Opened(PrimaryNumber primary, Epoch epoch, Lsn head, Lsn end,
              std::span<const Shown> records);

  // Judges a record that a tail shows; `next`: the LSN before which it stands
  // (0: the head).
  void Followed(Lsn next, const Shown& record);
  // Judges a tail that was told that the log begins at `head`, and that `next`
  // is gone.
  void Overtaken(Lsn next, Lsn head);

  // Notes that a client of the primary is about to write a record.
  OperationId Begin(PrimaryNumber primary, size_t payload_bytes);
  void HasLsn(OperationId operation, Lsn lsn);
  // Sets the payload's bytes after the operation's number; the remaining ones
  // follow from the number.
  void HasContent(OperationId operation, std::vector<std::byte> content) {
    at(operation).content = std::move(content);
  }
  // From here on the record may be found.
  void MayBeCompleted(OperationId operation);
  // From here on the record may be found as ABORTED.
  void MayBeAborted(OperationId operation);
  // Notes that a client was told that all up to `lsn` is durable.
  void Acknowledged(PrimaryNumber primary, Lsn lsn);

  // From here on records up to `lsn` may be cleaned by a client of the primary:
  // its own records, and those that it was opened with; not later records of
  // another primary at these places.
  void MayBeCleaned(PrimaryNumber primary, Lsn lsn) {
    cleaned_[lsn.value].insert(primary);
  }
  void MayBeCleanedThrough(PrimaryNumber primary, Lsn lsn) {
    cleaned_through_[primary].insert(lsn.value);
  }
  // Notes that such a call was refused, and did nothing.
  void NotCleanedThrough(PrimaryNumber primary, Lsn lsn);
  // Notes that CleanupAll succeeded. At its call LSN `next` was the next one
  // and `open` the first that was not completed. On W media the log now begins
  // at `durable_head`.
  void Emptied(Lsn next, Lsn open, Lsn durable_head);
  // Notes that CleanupAll was refused.
  void NotEmptied(PrimaryNumber primary, Lsn next, Lsn open);

  // Returns whether a client of the primary of that epoch may have completed a
  // record with these bytes there.
  bool WroteThere(Lsn lsn, Epoch epoch,
                  std::span<const std::byte> payload) const;

  bool IsCleaned(Lsn lsn) const { return IsCleaned(lsn.value); }
  // Judges the head on a machine's medium (P-L10).
  void JudgeHeadOfMedium(int machine, Lsn head);

  uint64_t records_acknowledged() const { return acknowledged_; }
  // Returns the newest epoch in which anything was acknowledged.
  Epoch epoch_acknowledged() const { return epoch_acknowledged_; }
  // Returns the LSN up to which all places are chosen.
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
  // Record chosen for an LSN.
  struct Choice {
    PrimaryNumber primary = 0;
    OperationId operation = 0;  // 0: not known, or aborted
    bool aborted = false;
    const char* why = "";
  };

  Operation& at(OperationId operation) { return operations_[operation - 1]; }
  // Returns the operation that wrote these bytes; 0: none.
  OperationId WhoWrote(std::span<const std::byte> payload) const;
  bool IsCleaned(uint64_t lsn) const;
  bool IsAborted(uint64_t lsn) const;
  // State when an opening began.
  struct Before {
    uint64_t chosen_end = 1;
    uint64_t emptied = 0;
    uint64_t durable_head = 0;
  };

  void JudgeHead(Lsn head, const Before& before);
  // Returns the first LSN before `head` that nobody cleaned, or `head`.
  uint64_t FirstUncleaned(Lsn head);
  void JudgeRecord(const Shown& record, std::set<OperationId>& seen);
  void Choose(uint64_t lsn, const Choice& choice);
  std::string Describe(uint64_t lsn, const Choice& choice) const;

  Oracle& oracle_;
  PrimaryNumber primaries_ = 0;
  std::map<PrimaryNumber, Before> before_;
  std::map<uint64_t, PrimaryNumber> by_epoch_;
  std::vector<Operation> operations_;
  std::map<std::pair<PrimaryNumber, uint64_t>, OperationId> by_lsn_;
  std::map<uint64_t, Choice> chosen_;
  std::map<PrimaryNumber, uint64_t> acknowledged_to_;
  // Cleaned places by LSN and primary. Which primary's record was meant is
  // known once the LSN is chosen.
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
