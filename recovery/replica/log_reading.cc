// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/log_reading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {
namespace {

LogPosition StartOf(const EpochEntry& entry) {
  return {entry.start_lsn, entry.start_offset, entry.start_chain};
}

}  // namespace

std::string DescribePosition(const LogPosition& position) {
  return absl::StrCat("LSN ", position.lsn.value, " at offset ",
                      position.offset.value, " with chain ",
                      absl::Hex(position.chain));
}

LogReading::LogReading(std::string name, Ring ring, uint64_t ring_offset,
                       const Installation& installation,
                       const LogPosition& start)
    : name_(std::move(name)),
      ring_(ring),
      ring_offset_(ring_offset),
      installation_(installation),
      start_(start),
      cursor_(ring_, installation_.table, start, installation_.end.offset),
      index_(std::make_shared<LsnIndex>(ring.capacity())) {
  if (start != installation.head) index_->BeginAt(start);
}

absl::Status LogReading::CheckStart(const LogPosition& at) const {
  const EpochEntry* const owner = installation_.table.Owner(at.lsn);
  if (owner == nullptr || owner->start_lsn != at.lsn || StartOf(*owner) == at) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(name_, ": epoch ", installation_.epoch.value,
                   " was not installed: the records before it lead to ",
                   DescribePosition(at), ", but epoch ", owner->epoch.value,
                   " starts with ", DescribePosition(StartOf(*owner)),
                   ". Copy the records again from a replica that has them"));
}

// The end may lie in the middle of an epoch, where nothing else gives the
// chain.
absl::Status LogReading::CheckEnd(const LogPosition& at) const {
  if (at == installation_.end) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name_, ": epoch ", installation_.epoch.value,
      " was not installed: the records lead to ", DescribePosition(at),
      ", expected ", DescribePosition(installation_.end),
      ". Copy the records again from a replica that has them"));
}

absl::Status LogReading::Unreadable(const LogPosition& at) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": epoch ", installation_.epoch.value, " was not installed: LSN ",
      at.lsn.value, " at offset ", ring_offset_ + ring_.Place(at.offset),
      " can't be read, expected are records up to LSN ",
      installation_.end.lsn.value - 1,
      ". Copy it again from a replica that has it"));
}

absl::StatusOr<bool> LogReading::Continue(uint64_t bytes_max) {
  const LogPosition& end = installation_.end;
  const RingOffset from = cursor_.position().offset;
  const uint64_t left = end.offset > from ? end.offset - from : 0;
  const RingOffset until = from + std::min(bytes_max, left);
  for (;;) {
    cursor_.WalkPlain(
        [this](const LogPosition& before, const RecordView&) {
          index_->Note(before);
          last_ = {before.offset, before.chain};
        },
        until);
    const LogPosition before = cursor_.position();
    index_->Note(before);
    // The walk above stops at each epoch, so that each start is seen here.
    ALPHEUS_RETURN_IF_ERROR(CheckStart(before));
    if (before.lsn >= end.lsn) {
      ALPHEUS_RETURN_IF_ERROR(CheckEnd(before));
      return true;
    }
    if (before.offset > from && before.offset >= until && until < end.offset) {
      return false;
    }
    if (cursor_.Next() != RecordCursor::Step::kRecord) {
      return Unreadable(before);
    }
    last_ = {before.offset, before.chain};
    if (cursor_.pad_damaged()) {
      damaged_pads_.push_back({before.lsn, cursor_.record_begin()});
    }
  }
}

}  // namespace alpheus::recovery
