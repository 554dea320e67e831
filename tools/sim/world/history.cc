// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/history.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"

namespace alpheus::sim {

void FillPayload(OperationId operation, std::span<std::byte> payload,
                 std::span<const std::byte> content) {
  for (size_t i = 0; i < payload.size(); i += sizeof(uint64_t)) {
    const uint64_t word = i == 0 ? operation : Mix(operation, i);
    std::memcpy(payload.data() + i, &word,
                std::min(sizeof(word), payload.size() - i));
  }
  if (content.empty()) return;
  std::ranges::copy(content, payload.subspan(kPayloadBytesMin).begin());
}

OperationId History::Begin(PrimaryNumber primary, size_t payload_bytes) {
  operations_.push_back({.primary = primary, .bytes = payload_bytes});
  return operations_.size();
}

void History::HasLsn(OperationId operation, Lsn lsn) {
  Operation& known = at(operation);
  known.lsn = lsn;
  if (!by_lsn_.emplace(std::pair(known.primary, lsn.value), operation).second) {
    oracle_.Violate("P-A3.1", absl::StrCat("primary ", known.primary,
                                           " gave LSN ", lsn.value, " twice"));
  }
  // Acknowledged before it was told who is there.
  const auto chosen = chosen_.find(lsn.value);
  if (chosen == chosen_.end() || chosen->second.primary != known.primary) {
    return;
  }
  Choice& choice = chosen->second;
  if (choice.operation == 0 && !choice.aborted) choice.operation = operation;
  if (choice.operation != operation) {
    oracle_.Violate(
        "P-C4", absl::StrCat(Describe(lsn.value, choice), ", but operation ",
                             operation, " was told that it is there"));
  }
}

void History::MayBeCompleted(OperationId operation) {
  at(operation).may_be_completed = true;
}

void History::MayBeAborted(OperationId operation) {
  at(operation).may_be_aborted = true;
  aborted_[at(operation).lsn.value].insert(at(operation).primary);
}

Lsn History::chosen_end() const {
  return chosen_.empty() ? Lsn(1) : Lsn(chosen_.rbegin()->first + 1);
}

std::string History::Describe(uint64_t lsn, const Choice& choice) const {
  return absl::StrCat("LSN ", lsn, " is ", choice.aborted ? "ABORTED " : "",
                      "of primary ", choice.primary, ", operation ",
                      choice.operation, " (", choice.why, ")");
}

void History::Choose(uint64_t lsn, const Choice& choice) {
  const auto [found, is_new] = chosen_.emplace(lsn, choice);
  if (is_new) return;
  Choice& old = found->second;
  const bool is_known = old.operation != 0 || old.aborted;
  const bool says = choice.operation != 0 || choice.aborted;
  if (old.primary != choice.primary ||
      (is_known && says &&
       (old.operation != choice.operation || old.aborted != choice.aborted))) {
    oracle_.Violate(
        old.primary != choice.primary ? "P-C5" : "P-C4",
        absl::StrCat(Describe(lsn, old), ", and ", Describe(lsn, choice)));
  }
  if (!is_known) {
    old.operation = choice.operation;
    old.aborted = choice.aborted;
  }
}

void History::Acknowledged(PrimaryNumber primary, Lsn lsn) {
  uint64_t& to = acknowledged_to_[primary];
  if (to < lsn.value) {
    epoch_acknowledged_ = std::max(epoch_acknowledged_, epochs_[primary]);
  }
  for (; to < lsn.value; ++to) {
    const uint64_t at_lsn = to + 1;
    ++acknowledged_;
    const auto found = by_lsn_.find({primary, at_lsn});
    Choice choice{.primary = primary, .why = "acknowledged"};
    if (found != by_lsn_.end()) {
      const Operation& operation = at(found->second);
      if (!operation.may_be_completed && !operation.may_be_aborted) {
        oracle_.Violate(
            "P-F1", absl::StrCat("primary ", primary, " acknowledged LSN ",
                                 at_lsn, ", which operation ", found->second,
                                 " has only reserved"));
      }
      // If it may be either, nobody knows yet.
      if (!operation.may_be_aborted) choice.operation = found->second;
    }
    Choose(at_lsn, choice);
  }
}

void History::Opened(PrimaryNumber primary, Epoch epoch, Lsn head, Lsn end,
                     std::span<const Shown> records) {
  const auto [found, is_new] = by_epoch_.emplace(epoch.value, primary);
  if (!is_new) {
    oracle_.Violate("P-INV-4", absl::StrCat("epoch ", epoch.value,
                                            " was opened by primaries ",
                                            found->second, " and ", primary));
    return;
  }
  epochs_[primary] = epoch;
  const Before& before = before_[primary];
  JudgeHead(head, before);
  std::set<OperationId> seen;
  uint64_t next = head.value;
  for (const Shown& record : records) {
    if (record.lsn.value != next++) {
      oracle_.Violate("P-C2", absl::StrCat("epoch ", epoch.value, " shows LSN ",
                                           record.lsn.value, " where LSN ",
                                           next - 1, " should be"));
      return;
    }
    JudgeRecord(record, seen);
  }
  if (next != end.value) {
    oracle_.Violate(
        "P-INV-11",
        absl::StrCat("epoch ", epoch.value, " shows records to LSN ", next - 1,
                     " and says that LSN ", end.value, " is next"));
  }
  const auto next_chosen = chosen_.lower_bound(end.value);
  if (next_chosen != chosen_.end() && next_chosen->first < before.chosen_end) {
    const auto& [lsn, choice] = *next_chosen;
    oracle_.Violate(
        "P-C1", absl::StrCat("epoch ", epoch.value, " ends with LSN ",
                             end.value - 1, ", but ", Describe(lsn, choice)));
  }
  opened_end_[primary] = end.value;
  // Acknowledgements to this primary's clients cover the records that it shows.
  acknowledged_to_[primary] = end.value - 1;
}

void History::NotCleanedThrough(PrimaryNumber primary, Lsn lsn) {
  std::multiset<uint64_t>& asked = cleaned_through_[primary];
  asked.erase(asked.find(lsn.value));
  unneeded_ = 0;  // may have counted on it
}

void History::Emptied(Lsn next, Lsn open, Lsn durable_head) {
  emptied_ = std::max(emptied_, next.value);
  if (open < next) {
    oracle_.Violate("P-L11", absl::StrCat("all before LSN ", next.value,
                                          " was cleaned, and LSN ", open.value,
                                          " was still open"));
  }
  if (durable_head < next) {
    oracle_.Violate(
        "P-L11",
        absl::StrCat("all before LSN ", next.value,
                     " was cleaned, and on a write quorum of media the "
                     "log begins with LSN ",
                     durable_head.value));
  }
}

void History::NotEmptied(PrimaryNumber primary, Lsn next, Lsn open) {
  NotCleanedThrough(primary, next - 1);
  if (open < next) return;
  oracle_.Violate("P-L11",
                  absl::StrCat("cleaning all before LSN ", next.value,
                               " was refused, and no reservation was open"));
}

void History::JudgeHead(Lsn head, const Before& before) {
  if (head.value < before.durable_head) {
    oracle_.Violate("P-L9", absl::StrCat("the log begins with LSN ", head.value,
                                         ", but with LSN ", before.durable_head,
                                         " on a write quorum of media"));
  }
  if (head.value < before.emptied) {
    oracle_.Violate("P-L11", absl::StrCat("the log begins with LSN ",
                                          head.value, ", but all before LSN ",
                                          before.emptied, " was cleaned"));
  }
  const uint64_t lsn = FirstUncleaned(head);
  if (lsn >= head.value) return;
  oracle_.Violate("P-L10", absl::StrCat("the log begins with LSN ", head.value,
                                        ", but nobody cleaned LSN ", lsn));
}

bool History::IsCleaned(uint64_t lsn) const {
  const auto chosen = chosen_.find(lsn);
  const auto means = [&](PrimaryNumber primary) {
    if (chosen == chosen_.end() || chosen->second.primary == primary) {
      return true;
    }
    const auto end = opened_end_.find(primary);
    return end != opened_end_.end() && lsn < end->second;
  };
  for (const auto& [primary, asked] : cleaned_through_) {
    if (!asked.empty() && lsn <= *asked.rbegin() && means(primary)) return true;
  }
  const auto one = cleaned_.find(lsn);
  return one != cleaned_.end() && std::ranges::any_of(one->second, means);
}

bool History::IsAborted(uint64_t lsn) const {
  const auto by = aborted_.find(lsn);
  if (by == aborted_.end()) return false;
  const auto chosen = chosen_.find(lsn);
  return chosen == chosen_.end() ||
         (by->second.contains(chosen->second.primary) &&
          chosen->second.operation == 0);
}

// An ABORTED record may be missing.
uint64_t History::FirstUncleaned(Lsn head) {
  uint64_t lsn = unneeded_ + 1;
  while (lsn < head.value && (IsCleaned(lsn) || IsAborted(lsn))) {
    if (lsn == unneeded_ + 1 && chosen_.contains(lsn)) unneeded_ = lsn;
    ++lsn;
  }
  return lsn;
}

void History::JudgeHeadOfMedium(int machine, Lsn head) {
  const uint64_t lsn = FirstUncleaned(head);
  if (lsn >= head.value) return;
  oracle_.Violate("P-L10", absl::StrCat("on the medium of machine ", machine,
                                        " the log begins with LSN ", head.value,
                                        ", but nobody cleaned LSN ", lsn));
}

void History::Followed(Lsn next, const Shown& record) {
  if (record.lsn < next) {
    oracle_.Violate("P-C2",
                    absl::StrCat("a tail shows LSN ", record.lsn.value,
                                 " where LSN ", next.value, " comes next"));
  }
  for (uint64_t lsn = next.value; next != Lsn(0) && lsn < record.lsn.value;
       ++lsn) {
    if (IsAborted(lsn)) continue;
    oracle_.Violate("P-C2", absl::StrCat("a tail shows LSN ", record.lsn.value,
                                         " and has left out LSN ", lsn,
                                         ", which nobody aborted"));
    return;
  }
  std::set<OperationId> seen;
  JudgeRecord(record, seen);
}

void History::Overtaken(Lsn next, Lsn head) {
  const uint64_t lsn = FirstUncleaned(head);
  if (next < head && lsn >= head.value) return;
  oracle_.Violate(
      "P-L10", absl::StrCat("a tail was told that LSN ", next.value,
                            " is gone and the log begins with LSN ", head.value,
                            ", but nobody cleaned LSN ", lsn));
}

OperationId History::WhoWrote(std::span<const std::byte> payload) const {
  OperationId id = 0;
  if (payload.size() < sizeof(id)) return 0;
  std::memcpy(&id, payload.data(), sizeof(id));
  if (id == 0 || id > operations_.size() ||
      operations_[id - 1].bytes != payload.size()) {
    return 0;
  }
  std::vector<std::byte> expected(payload.size());
  FillPayload(id, expected, operations_[id - 1].content);
  return std::ranges::equal(expected, payload) ? id : 0;
}

bool History::WroteThere(Lsn lsn, Epoch epoch,
                         std::span<const std::byte> payload) const {
  const OperationId id = WhoWrote(payload);
  const auto owner = by_epoch_.find(epoch.value);
  if (id == 0 || owner == by_epoch_.end()) return false;
  const Operation& operation = operations_[id - 1];
  return operation.primary == owner->second && operation.may_be_completed &&
         (operation.lsn == Lsn(0) || operation.lsn == lsn);
}

void History::JudgeRecord(const Shown& record, std::set<OperationId>& seen) {
  const uint64_t lsn = record.lsn.value;
  const auto owner = by_epoch_.find(record.epoch.value);
  if (owner == by_epoch_.end()) {
    oracle_.Violate(
        "P-C3", absl::StrCat("LSN ", lsn, " is of epoch ", record.epoch.value,
                             ", which nobody has opened"));
    return;
  }
  Choice choice{.primary = owner->second, .why = "shown"};
  if (record.cleaned) {
    if (!IsCleaned(lsn)) {
      oracle_.Violate("P-L8", absl::StrCat("LSN ", lsn,
                                           " is cleaned, but not by a client"));
    }
    return Choose(lsn, choice);
  }
  if (record.aborted) {
    const auto found = by_lsn_.find({owner->second, lsn});
    if (found == by_lsn_.end() || !at(found->second).may_be_aborted) {
      oracle_.Violate("P-C3", absl::StrCat("LSN ", lsn,
                                           " is ABORTED, but not by a client"));
    }
    choice.aborted = true;
    return Choose(lsn, choice);
  }
  const OperationId id = WhoWrote(record.payload);
  if (id == 0) {
    oracle_.Violate("P-C3",
                    absl::StrCat("LSN ", lsn, " has bytes that nobody wrote"));
    return;
  }
  const Operation& operation = at(id);
  if (operation.primary != owner->second || !operation.may_be_completed ||
      (operation.lsn != Lsn(0) && operation.lsn != record.lsn)) {
    oracle_.Violate(
        "P-C3",
        absl::StrCat("LSN ", lsn, " of epoch ", record.epoch.value,
                     " shows operation ", id, ", which is of primary ",
                     operation.primary, ", LSN ", operation.lsn.value,
                     operation.may_be_completed ? "" : ", not completed"));
  }
  if (!seen.insert(id).second) {
    oracle_.Violate("P-C3", absl::StrCat("LSN ", lsn, " shows operation ", id,
                                         " a second time"));
  }
  choice.operation = id;
  Choose(lsn, choice);
}

}  // namespace alpheus::sim
