// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/open_object_log.h"

#include "alpheus/log_tail.h"
#include "alpheus/recovered_range.h"
#include "alpheus/reservation.h"
#include "alpheus/tail_record.h"
#include "log/base/deadline.h"
#include "log/base/status_macros.h"

namespace alpheus::store {
namespace {

class TailReader final : public ObjectReader {
 public:
  explicit TailReader(std::unique_ptr<LogTail> tail) : tail_(std::move(tail)) {}

  absl::StatusOr<std::optional<PlacedRecord>> Next() override {
    ALPHEUS_ASSIGN_OR_RETURN(const std::optional<TailRecord> record,
                             tail_->Next());
    if (!record) return std::nullopt;
    return PlacedRecord{record->lsn, record->epoch, record->offset,
                        record->payload};
  }

 private:
  const std::unique_ptr<LogTail> tail_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectReader>> OpenObjectLog::ReadFromHead() {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogTail> tail, log_.Tail(Lsn(0)));
  return std::make_unique<TailReader>(std::move(tail));
}

absl::StatusOr<PlacedRecord> OpenObjectLog::Append(
    size_t bytes,
    absl::FunctionRef<void(RingOffset offset, std::span<std::byte> payload)>
        fill) {
  // A deadline that has passed: the log makes what room it can at once, and
  // waits for nothing.
  ALPHEUS_ASSIGN_OR_RETURN(Reservation record,
                           log_.Reserve(bytes, Deadline::AtNanos(0)));
  const PlacedRecord placed = {record.lsn(), record.epoch(), record.offset(),
                               record.payload()};
  fill(placed.offset, record.payload());
  ALPHEUS_RETURN_IF_ERROR(log_.Complete(std::move(record)).status());
  return placed;
}

absl::Status OpenObjectLog::ForEachRecovered(
    absl::FunctionRef<absl::Status(const PlacedRecord& record)> visit) {
  return log_.ForEachRecovered([&](const RecoveredRecord& record) {
    return visit({record.lsn, record.epoch, record.offset, record.payload});
  });
}

}  // namespace alpheus::store
