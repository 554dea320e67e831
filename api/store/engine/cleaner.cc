// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/cleaner.h"

#include <algorithm>
#include <utility>

#include "api/store/engine/room.h"
#include "log/base/status_macros.h"

namespace alpheus::store {
namespace {

// Where nearly all is garbage, a step reads so many times what it may copy.
constexpr uint64_t kReadPerCopy = 8;

Cleaner::Options Bounded(Cleaner::Options options, const Room& room) {
  options.step_bytes = std::min(options.step_bytes, room.objects_bytes_max());
  return options;
}

}  // namespace

Cleaner::Cleaner(ObjectLog& log, Engine& engine, const Options& options)
    : log_(log),
      engine_(engine),
      options_(Bounded(options, Room(log.ring().size()))) {}

bool Cleaner::IsDue() {
  const uint64_t ring = log_.ring().size();
  const uint64_t used = ring - log_.free_bytes();
  const uint64_t percent =
      is_cleaning_ ? options_.end_percent : options_.begin_percent;
  is_cleaning_ = used * 100 > ring * percent &&
                 engine_.garbage_bytes() >= Room(ring).garbage_min();
  return is_cleaning_;
}

absl::StatusOr<bool> Cleaner::Poll() {
  if (step_ == nullptr && !IsDue()) return false;
  absl::StatusOr<bool> polled = step_ == nullptr ? BeginStep() : EndStep();
  if (!polled.ok()) {
    // CLN1. A step that was cut off leaves records behind whose copies nobody
    // awaits: they are read again.
    reader_ = nullptr;
    next_.reset();
  }
  return polled;
}

absl::StatusOr<bool> Cleaner::ReadNext() {
  if (reader_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(reader_, log_.ReadFromHead());
  }
  if (!next_) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::optional<PlacedRecord> record,
                             reader_->Next());
    if (!record) return false;
    next_ = {*record, {record->payload.begin(), record->payload.end()}};
    next_->record.payload = next_->payload;
  }
  return next_->record.lsn <= engine_.shown_lsn();  // CLN2
}

absl::StatusOr<bool> Cleaner::BeginStep() {
  auto step = std::make_shared<Step>();
  const auto done = [step](const absl::Status& status) {
    --step->waits;
    step->status.Update(status);
  };
  uint64_t read = 0;
  uint64_t copied = 0;
  while (copied < options_.step_bytes &&
         read < options_.step_bytes * kReadPerCopy) {
    ALPHEUS_ASSIGN_OR_RETURN(const bool any, ReadNext());
    if (!any) break;
    step->records.push_back(*std::exchange(next_, std::nullopt));
    const PlacedRecord& record = step->records.back().record;
    ALPHEUS_ASSIGN_OR_RETURN(const Engine::Copies copies,
                             engine_.CopyForward(record, done));
    step->waits += copies.count;
    copied += copies.bytes;
    read += record.payload.size();
  }
  if (step->records.empty()) return false;
  copied_bytes_ += copied;
  step_ = std::move(step);
  return true;
}

// CLN1.
absl::StatusOr<bool> Cleaner::EndStep() {
  if (step_->waits > 0) return false;
  const std::shared_ptr<Step> step = std::exchange(step_, nullptr);
  ALPHEUS_RETURN_IF_ERROR(step->status);
  ALPHEUS_RETURN_IF_ERROR(log_.CleanupThrough(step->records.back().record.lsn));
  return true;
}

}  // namespace alpheus::store
