// SPDX-License-Identifier: Apache-2.0
#include "log/format/epoch_table.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus {

EpochTable EpochTable::Empty(Uuid log_id) {
  EpochTable table;
  table.log_id_ = log_id;
  return table;
}

absl::StatusOr<EpochTable> EpochTable::Decode(
    Uuid log_id, std::span<const std::byte> content) {
  if (content.size() % sizeof(EpochEntryFormat) != 0) {
    return absl::DataLossError(absl::StrCat("epoch table: ", content.size(),
                                            " bytes are no whole entries"));
  }
  EpochTable table = Empty(log_id);
  for (size_t at = 0; at < content.size(); at += sizeof(EpochEntryFormat)) {
    EpochEntryFormat f;
    std::memcpy(&f, content.data() + at, sizeof(f));
    const EpochEntry entry{Epoch(f.epoch), f.nonce, Lsn(f.start_lsn),
                           RingOffset(f.start_offset), f.start_chain};
    if (!table.entries_.empty() &&
        (entry.epoch <= table.entries_.back().epoch ||
         entry.start_lsn < table.entries_.back().start_lsn)) {
      return absl::DataLossError(absl::StrCat("epoch table: entry of epoch ",
                                              f.epoch, " is out of order"));
    }
    table.Add(entry);
  }
  return table;
}

std::vector<std::byte> EpochTable::Encode() const {
  std::vector<std::byte> content(entries_.size() * sizeof(EpochEntryFormat));
  std::byte* to = content.data();
  for (const EpochEntry& entry : entries_) {
    const EpochEntryFormat f{entry.epoch.value, entry.nonce,
                             entry.start_lsn.value, entry.start_offset.value,
                             entry.start_chain};
    std::memcpy(to, &f, sizeof(f));
    to += sizeof(f);
  }
  return content;
}

const EpochEntry* EpochTable::Owner(Lsn lsn) const {
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), lsn,
      [](Lsn l, const EpochEntry& entry) { return l < entry.start_lsn; });
  return after == entries_.begin() ? nullptr : &*(after - 1);
}

const EpochKey& EpochTable::KeyOf(const EpochEntry* entry) const {
  return keys_[entry - entries_.data()];
}

EpochTable EpochTable::With(const EpochEntry& next, Lsn head_lsn) const {
  EpochTable table = Empty(log_id_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Lsn end =
        i + 1 < entries_.size() ? entries_[i + 1].start_lsn : next.start_lsn;
    const bool owns_live_record = entries_[i].start_lsn < end && head_lsn < end;
    if (owns_live_record) table.Add(entries_[i]);
  }
  ALPHEUS_CHECK(table.entries_.empty() ||
                    (table.entries_.back().epoch < next.epoch &&
                     table.entries_.back().start_lsn <= next.start_lsn),
                "ET1 (epoch_table.h)");
  table.Add(next);
  return table;
}

void EpochTable::Add(const EpochEntry& entry) {
  entries_.push_back(entry);
  keys_.emplace_back(log_id_, entry.epoch, entry.nonce);
}

}  // namespace alpheus
