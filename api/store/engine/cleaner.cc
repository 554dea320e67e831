// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/cleaner.h"

#include <optional>
#include <utility>

#include "log/base/status_macros.h"

namespace alpheus::store {

bool Cleaner::IsDue() {
  const uint64_t ring = log_.ring().size();
  const uint64_t used = ring - log_.free_bytes();
  const uint64_t percent =
      is_cleaning_ ? options_.end_percent : options_.begin_percent;
  is_cleaning_ = used * 100 > ring * percent &&
                 engine_.live_bytes() * 100 < ring * options_.live_percent_max;
  return is_cleaning_;
}

absl::StatusOr<bool> Cleaner::Poll() {
  if (step_ != nullptr) return EndStep();
  if (!IsDue()) return false;
  return BeginStep();
}

absl::StatusOr<bool> Cleaner::BeginStep() {
  if (reader_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(reader_, log_.ReadFromHead());
  }
  auto step = std::make_shared<Step>();
  uint64_t bytes = 0;
  while (bytes < options_.step_bytes) {
    ALPHEUS_ASSIGN_OR_RETURN(std::optional<PlacedRecord> record,
                             reader_->Next());
    if (!record) break;
    bytes += record->payload.size();
    step->payloads.emplace_back(record->payload.begin(), record->payload.end());
    record->payload = step->payloads.back();
    ++step->waits;
    ALPHEUS_RETURN_IF_ERROR(engine_.CopyForward(
        *record, [step](const absl::Status& status,
                        const std::vector<Outcome>& /*outcomes*/) {
          --step->waits;
          step->status.Update(status);
        }));
    step->through = record->lsn;
  }
  if (step->through == Lsn(0)) return false;
  step_ = std::move(step);
  return true;
}

// CLN1.
absl::StatusOr<bool> Cleaner::EndStep() {
  if (step_->waits > 0) return false;
  const std::shared_ptr<Step> step = std::exchange(step_, nullptr);
  if (!step->status.ok()) {
    reader_ = nullptr;  // from the head, the next time
    return step->status;
  }
  ALPHEUS_RETURN_IF_ERROR(log_.CleanupThrough(step->through));
  return true;
}

}  // namespace alpheus::store
