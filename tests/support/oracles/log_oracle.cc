// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/log_oracle.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mix.h"

namespace alpheus::testing {
namespace {

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

std::string Hex(std::span<const std::byte> bytes) {
  const std::string text(AsText(bytes));
  return absl::StrCat(bytes.size(), " bytes ", absl::BytesToHexString(text));
}

uint64_t DigestOf(const std::string& bytes) {
  uint64_t digest = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at,
                std::min<size_t>(8, bytes.size() - at));
    digest = Mix(digest, word);
  }
  return digest;
}

}  // namespace

bool RecoveredLog::Record::SameAs(const Record& other) const {
  return aborted == other.aborted && cleaned == other.cleaned &&
         SameBytes(payload, other.payload);
}

std::string RecoveredLog::Describe() const {
  std::string text = absl::StrCat("  head LSN ", head.value, "\n");
  for (size_t i = 0; i < records.size(); ++i) {
    absl::StrAppend(&text, "  LSN ", head.value + i,
                    records[i].aborted ? " aborted" : "",
                    records[i].cleaned ? " cleaned" : "", " ",
                    Hex(records[i].payload), "\n");
  }
  return text;
}

void LogOracle::NoteReserved(Lsn lsn) { At(lsn).state = State::kReserved; }

void LogOracle::NoteCompleting(Lsn lsn, std::string payload) {
  At(lsn).state = State::kCompleted;
  At(lsn).payload = std::move(payload);
}

void LogOracle::NoteAborting(Lsn lsn) { At(lsn).state = State::kAborted; }

LogOracle::Ticket LogOracle::NoteAppending(std::string payload) {
  appends_.push_back({next_ticket_, std::move(payload)});
  return next_ticket_++;
}

void LogOracle::NoteAppended(Ticket ticket, Lsn lsn) {
  for (Append& append : appends_) {
    if (append.ticket == ticket) NoteCompleting(lsn, append.payload);
  }
  NoteRefused(ticket);
}

void LogOracle::NoteRefused(Ticket ticket) {
  std::erase_if(appends_, [ticket](const Append& append) {
    return append.ticket == ticket;
  });
}

void LogOracle::NoteDurable(Lsn lsn) {
  durable_lsn_ = std::max(durable_lsn_, lsn);
}

void LogOracle::NoteCleaning(Lsn first, Lsn last) {
  for (Lsn lsn = first; lsn <= last; lsn = lsn + 1) At(lsn).cleaning = true;
}

void LogOracle::NoteCleaningEndsBefore(Lsn next) {
  for (size_t i = next.value - 1; i < entries_.size(); ++i) {
    entries_[i].cleaning = false;
  }
}

void LogOracle::NoteAllCleaned(Lsn next) {
  head_min_ = std::max(head_min_, next);
}

void LogOracle::NoteRecovered(const RecoveredLog& log) {
  entries_.resize(log.next().value - 1);
  for (Lsn lsn(1); lsn < log.head; lsn = lsn + 1) At(lsn).cleaning = true;
  for (size_t i = 0; i < log.records.size(); ++i) {
    Entry& entry = At(log.head + i);
    entry.state = log.records[i].aborted ? State::kAborted : State::kCompleted;
    entry.cleaning = log.records[i].cleaned;
    entry.payload = std::string(AsText(log.records[i].payload));
  }
  appends_.clear();
  durable_lsn_ = log.next() - 1;
  head_min_ = log.head;
}

std::string LogOracle::Check(const RecoveredLog& log) const {
  if (std::string wrong = CheckHead(log.head); !wrong.empty()) return wrong;
  if (log.next() <= durable_lsn_) {
    return absl::StrCat("LOR2: the log ends with LSN ", log.next().value - 1,
                        ", but ", durable_lsn_.value, " was acknowledged");
  }
  std::vector<bool> used_appends(appends_.size());
  for (size_t i = 0; i < log.records.size(); ++i) {
    std::string wrong =
        CheckRecord(log.head + i, log.records[i], &used_appends);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string LogOracle::CheckHead(Lsn head) const {
  if (head < head_min_) {
    return absl::StrCat("LOR5: head is LSN ", head.value,
                        ", but everything before ", head_min_.value,
                        " was cleaned for good");
  }
  for (Lsn lsn(1); lsn < head; lsn = lsn + 1) {
    const Entry* entry = Find(lsn);
    if (entry == nullptr ||
        (!entry->cleaning && entry->state != State::kAborted)) {
      return absl::StrCat("LOR4: head is LSN ", head.value, ", but LSN ",
                          lsn.value, " was never cleaned");
    }
  }
  return "";
}

std::string LogOracle::CheckRecord(Lsn lsn, const RecoveredLog::Record& record,
                                   std::vector<bool>* used_appends) const {
  const Entry* entry = Find(lsn);
  const State state = entry == nullptr ? State::kUnknown : entry->state;
  if (record.cleaned && (entry == nullptr || !entry->cleaning)) {
    return absl::StrCat("LOR4: LSN ", lsn.value,
                        " comes back as cleaned, but nobody cleaned it");
  }
  if (record.aborted) {
    if (state == State::kAborted) return "";
    return absl::StrCat("LOR3: LSN ", lsn.value,
                        " comes back as aborted, but nobody gave it up");
  }
  if (state == State::kCompleted) {
    // The payload of a cleaned record is nobody's business any more.
    if (record.cleaned || SameBytes(record.payload, AsBytes(entry->payload))) {
      return "";
    }
    return absl::StrCat("LOR3: LSN ", lsn.value, " comes back with ",
                        Hex(record.payload), ", completed with ",
                        Hex(AsBytes(entry->payload)));
  }
  if (state == State::kUnknown) {
    for (size_t i = 0; i < appends_.size(); ++i) {
      if (!(*used_appends)[i] &&
          SameBytes(record.payload, AsBytes(appends_[i].payload))) {
        (*used_appends)[i] = true;
        return "";
      }
    }
  }
  return absl::StrCat(
      "LOR3: LSN ", lsn.value, " comes back with ", Hex(record.payload),
      state == State::kReserved  ? ", but was reserved and never completed"
      : state == State::kAborted ? ", but was given up"
                                 : ", but was never completed by anybody");
}

uint64_t LogOracle::Digest() const {
  uint64_t digest =
      Mix(Mix(durable_lsn_.value, head_min_.value), entries_.size());
  for (const Entry& entry : entries_) {
    digest = Mix(digest, static_cast<uint64_t>(entry.state) * 2 +
                             (entry.cleaning ? 1 : 0));
    digest = Mix(digest, DigestOf(entry.payload));
  }
  for (const Append& append : appends_) {
    digest = Mix(digest, DigestOf(append.payload));
  }
  return digest;
}

std::string LogOracle::Describe() const {
  static constexpr const char* kNames[] = {"unknown", "reserved", "completed",
                                           "aborted"};
  std::string text = absl::StrCat("  durable LSN ", durable_lsn_.value,
                                  ", head at least ", head_min_.value, "\n");
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    absl::StrAppend(&text, "  LSN ", i + 1, " ",
                    kNames[static_cast<int>(entry.state)],
                    entry.cleaning ? ", cleanup asked" : "", " ",
                    Hex(AsBytes(entry.payload)), "\n");
  }
  for (const Append& append : appends_) {
    absl::StrAppend(&text, "  append that runs: ", Hex(AsBytes(append.payload)),
                    "\n");
  }
  return text;
}

LogOracle::Entry& LogOracle::At(Lsn lsn) {
  if (lsn.value > entries_.size()) entries_.resize(lsn.value);
  return entries_[lsn.value - 1];
}

const LogOracle::Entry* LogOracle::Find(Lsn lsn) const {
  return lsn.value == 0 || lsn.value > entries_.size()
             ? nullptr
             : &entries_[lsn.value - 1];
}

}  // namespace alpheus::testing
