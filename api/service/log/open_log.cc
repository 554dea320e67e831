// SPDX-License-Identifier: Apache-2.0
#include "api/service/log/open_log.h"

#include <utility>

#include "alpheus/reservation.h"
#include "log/base/check.h"
#include "log/base/deadline.h"
#include "log/base/status_macros.h"

namespace alpheus::service {

absl::StatusOr<Place> OpenLog::Append(
    std::span<const std::span<const std::byte>> parts) {
  size_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  // A deadline that has passed: the log makes what room it can at once, and
  // waits for nothing.
  ALPHEUS_ASSIGN_OR_RETURN(Reservation record,
                           log_.Reserve(bytes, Deadline::AtNanos(0)));
  size_t offset = 0;
  for (const auto part : parts) {
    const absl::Status copied = log_.Copy(record, offset, part);
    ALPHEUS_CHECK(copied.ok(), "the reservation is open and has room");
    offset += part.size();
  }
  const Place place = {record.epoch(), record.lsn()};
  // A log that fails now may have the record or not. BeginForce and OnPersisted
  // say so of each of its records.
  (void)log_.Complete(std::move(record));
  return place;
}

absl::Status OpenLog::OnPersisted(
    Lsn lsn, PersistedBy by,
    std::function<void(const absl::Status&)> callback) {
  return log_.OnPersisted(lsn, by, std::move(callback));
}

}  // namespace alpheus::service
