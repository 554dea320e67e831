// SPDX-License-Identifier: Apache-2.0
// The log of the C interface, over alpheus/log.h.
#include "alpheus/log.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/alpheus.h"
#include "api/c/log_handle.h"
#include "api/c/options.h"
#include "api/c/result.h"
#include "log/base/status_macros.h"

namespace alpheus::c {
namespace {

using Bytes = std::span<const std::byte>;

Bytes BytesOf(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

absl::Status NotOpen(const char* function, uint64_t lsn) {
  return absl::FailedPreconditionError(
      absl::StrCat(function, ": LSN ", lsn,
                   " is not open: it was completed, aborted or never reserved "
                   "from this log"));
}

// Returns OK and the LSN, if it is asked for, or the error.
alpheus_code ReturnLsn(const absl::StatusOr<Lsn>& result, uint64_t* lsn,
                       alpheus_error* error) {
  if (!result.ok()) return Return(result.status(), error);
  if (lsn != nullptr) *lsn = result->value;
  return ReturnOk(error);
}

absl::Status Format(const alpheus_format_options* given, alpheus_uuid* log_id) {
  ALPHEUS_ASSIGN_OR_RETURN(const FormatOptions options, FormatOptionsOf(given));
  ALPHEUS_ASSIGN_OR_RETURN(const Uuid id, Log::Format(options));
  if (log_id != nullptr) *log_id = ViewOf(id);
  return absl::OkStatus();
}

absl::StatusOr<alpheus_log*> Open(const alpheus_log_options* given) {
  ALPHEUS_ASSIGN_OR_RETURN(const LogOptions options, LogOptionsOf(given));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> log, Log::Open(options));
  return new alpheus_log(std::move(log), options.exposure_records_max);
}

absl::Status CheckNothingIsOpen(alpheus_log& log) {
  const uint64_t cursors = log.cursors.load(std::memory_order_acquire);
  if (cursors != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("alpheus_log_close: ", cursors,
                     " cursors are open; alpheus_cursor_finish ends them"));
  }
  if (log.reservations.AnyIn(log.log->durable_lsn() + 1, log.log->next_lsn())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "alpheus_log_close: reservations are open after durable LSN ",
        log.log->durable_lsn().value, "; complete or abort them"));
  }
  return absl::OkStatus();
}

// Checks the parts: a sum that overflows would look like a small record.
absl::Status CheckParts(const alpheus_log& log,
                        std::span<const alpheus_slice> parts) {
  const size_t bytes_max = log.log->payload_bytes_max();
  size_t room = bytes_max;
  for (const alpheus_slice& part : parts) {
    ALPHEUS_RETURN_IF_ERROR(
        CheckData("alpheus_log_append_parts", part.data, part.size));
    if (part.size > room) {
      return absl::InvalidArgumentError(absl::StrCat(
          "alpheus_log_append_parts: ", parts.size(),
          " parts are together larger than the largest record, ", bytes_max,
          " bytes. Split them, or format a larger region"));
    }
    room -= part.size;
  }
  return absl::OkStatus();
}

absl::StatusOr<Lsn> Append(alpheus_log& log,
                           std::span<const alpheus_slice> parts,
                           const alpheus_force_options* given) {
  // Few parts need no allocation.
  std::array<Bytes, 16> few;
  std::vector<Bytes> many;
  ALPHEUS_ASSIGN_OR_RETURN(const ForceOptions options, ForceOptionsOf(given));
  ALPHEUS_RETURN_IF_ERROR(CheckParts(log, parts));
  std::span<Bytes> joined(few);
  if (parts.size() > few.size()) {
    many.resize(parts.size());
    joined = many;
  }
  joined = joined.first(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    joined[i] = BytesOf(parts[i].data, parts[i].size);
  }
  return log.log->Append(std::span<const Bytes>(joined), options);
}

}  // namespace
}  // namespace alpheus::c

using alpheus::Deadline;
using alpheus::Lsn;
using alpheus::Reservation;
using alpheus::c::Return;
using alpheus::c::ReturnNull;
using alpheus::c::ReturnOk;

extern "C" {

alpheus_code alpheus_log_format(const alpheus_format_options* options,
                                alpheus_uuid* log_id,
                                alpheus_error* error) noexcept {
  return Return(alpheus::c::Format(options, log_id), error);
}

alpheus_code alpheus_log_open(const alpheus_log_options* options,
                              alpheus_log** log,
                              alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_open", "log", error);
  *log = nullptr;
  const auto opened = alpheus::c::Open(options);
  if (!opened.ok()) return Return(opened.status(), error);
  *log = *opened;
  return ReturnOk(error);
}

alpheus_code alpheus_log_close(alpheus_log* log,
                               alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnOk(error);
  if (const auto idle = alpheus::c::CheckNothingIsOpen(*log); !idle.ok()) {
    return Return(idle, error);
  }
  const absl::Status closed = log->log->Close();
  delete log;
  return Return(closed, error);
}

alpheus_code alpheus_log_reserve(alpheus_log* log, size_t bytes,
                                 int64_t deadline_ns, uint64_t* lsn,
                                 alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_reserve", "log", error);
  // Without its LSN no caller could finish the record.
  if (lsn == nullptr) return ReturnNull("alpheus_log_reserve", "lsn", error);
  auto reserved = log->log->Reserve(bytes, alpheus::c::DeadlineOf(deadline_ns));
  if (!reserved.ok()) return Return(reserved.status(), error);
  *lsn = reserved->lsn().value;
  log->reservations.Put(*std::move(reserved));
  return ReturnOk(error);
}

alpheus_code alpheus_log_copy(alpheus_log* log, uint64_t lsn, size_t offset,
                              const void* data, size_t size,
                              alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_copy", "log", error);
  const auto checked = alpheus::c::CheckData("alpheus_log_copy", data, size);
  if (!checked.ok()) return Return(checked, error);
  Reservation* reservation = log->reservations.Find(Lsn(lsn));
  if (reservation == nullptr) {
    return Return(alpheus::c::NotOpen("alpheus_log_copy", lsn), error);
  }
  return Return(
      log->log->Copy(*reservation, offset, alpheus::c::BytesOf(data, size)),
      error);
}

alpheus_code alpheus_log_payload(alpheus_log* log, uint64_t lsn, void** payload,
                                 alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_payload", "log", error);
  if (payload == nullptr) {
    return ReturnNull("alpheus_log_payload", "payload", error);
  }
  Reservation* reservation = log->reservations.Find(Lsn(lsn));
  if (reservation == nullptr) {
    return Return(alpheus::c::NotOpen("alpheus_log_payload", lsn), error);
  }
  *payload = reservation->payload().data();
  return ReturnOk(error);
}

alpheus_code alpheus_log_complete(alpheus_log* log, uint64_t lsn,
                                  alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_complete", "log", error);
  Reservation reservation = log->reservations.Take(Lsn(lsn));
  if (!reservation.is_open()) {
    return Return(alpheus::c::NotOpen("alpheus_log_complete", lsn), error);
  }
  return Return(log->log->Complete(std::move(reservation)).status(), error);
}

alpheus_code alpheus_log_abort(alpheus_log* log, uint64_t lsn,
                               alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_abort", "log", error);
  Reservation reservation = log->reservations.Take(Lsn(lsn));
  if (!reservation.is_open()) {
    return Return(alpheus::c::NotOpen("alpheus_log_abort", lsn), error);
  }
  reservation.Abort();
  return ReturnOk(error);
}

alpheus_code alpheus_log_detach(alpheus_log* log, uint64_t lsn,
                                alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_detach", "log", error);
  Reservation* reservation = log->reservations.Find(Lsn(lsn));
  if (reservation == nullptr) {
    return Return(alpheus::c::NotOpen("alpheus_log_detach", lsn), error);
  }
  reservation->Detach();
  return ReturnOk(error);
}

alpheus_code alpheus_log_force(alpheus_log* log, uint64_t lsn,
                               const alpheus_force_options* options,
                               alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_force", "log", error);
  const auto force = alpheus::c::ForceOptionsOf(options);
  if (!force.ok()) return Return(force.status(), error);
  return Return(log->log->Force(Lsn(lsn), *force), error);
}

alpheus_code alpheus_log_begin_force(alpheus_log* log, uint64_t lsn,
                                     alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_begin_force", "log", error);
  }
  return Return(log->log->BeginForce(Lsn(lsn)), error);
}

alpheus_code alpheus_log_wait_durable(alpheus_log* log, uint64_t lsn,
                                      int64_t deadline_ns,
                                      alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_wait_durable", "log", error);
  }
  const Deadline deadline = alpheus::c::DeadlineOf(deadline_ns);
  return Return(log->log->WaitDurable(Lsn(lsn), deadline), error);
}

alpheus_code alpheus_log_on_durable(alpheus_log* log, uint64_t lsn,
                                    alpheus_durable_callback callback,
                                    void* context,
                                    alpheus_error* error) noexcept {
  constexpr const char* kCall = "alpheus_log_on_durable";
  if (log == nullptr) return ReturnNull(kCall, "log", error);
  if (callback == nullptr) return ReturnNull(kCall, "callback", error);
  return Return(
      log->log->OnDurable(Lsn(lsn),
                          [callback, context, lsn](const absl::Status& status) {
                            alpheus_error outcome;
                            Return(status, &outcome);
                            callback(context, lsn, &outcome);
                          }),
      error);
}

alpheus_code alpheus_log_append(alpheus_log* log, const void* data, size_t size,
                                const alpheus_force_options* options,
                                uint64_t* lsn, alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_append", "log", error);
  const auto checked = alpheus::c::CheckData("alpheus_log_append", data, size);
  if (!checked.ok()) return Return(checked, error);
  const auto force = alpheus::c::ForceOptionsOf(options);
  if (!force.ok()) return Return(force.status(), error);
  return alpheus::c::ReturnLsn(
      log->log->Append(alpheus::c::BytesOf(data, size), *force), lsn, error);
}

alpheus_code alpheus_log_append_parts(alpheus_log* log,
                                      const alpheus_slice* parts,
                                      size_t part_count,
                                      const alpheus_force_options* options,
                                      uint64_t* lsn,
                                      alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_append_parts", "log", error);
  }
  if (parts == nullptr && part_count != 0) {
    return ReturnNull("alpheus_log_append_parts", "parts", error);
  }
  return alpheus::c::ReturnLsn(
      alpheus::c::Append(*log, {parts, part_count}, options), lsn, error);
}

uint64_t alpheus_log_durable_lsn(const alpheus_log* log) noexcept {
  return log == nullptr ? 0 : log->log->durable_lsn().value;
}

uint64_t alpheus_log_next_lsn(const alpheus_log* log) noexcept {
  return log == nullptr ? 0 : log->log->next_lsn().value;
}

uint64_t alpheus_log_head_lsn(const alpheus_log* log) noexcept {
  return log == nullptr ? 0 : log->log->head_lsn().value;
}

uint64_t alpheus_log_exposed(const alpheus_log* log) noexcept {
  return log == nullptr ? 0 : log->log->Exposed();
}

uint64_t alpheus_log_exposed_max(const alpheus_log* log) noexcept {
  return log == nullptr ? 0 : log->log->ExposedMax();
}

size_t alpheus_log_payload_bytes_max(const alpheus_log* log) noexcept {
  return log == nullptr ? 0 : log->log->payload_bytes_max();
}

alpheus_code alpheus_log_cleanup(alpheus_log* log, uint64_t lsn,
                                 alpheus_error* error) noexcept {
  if (log == nullptr) return ReturnNull("alpheus_log_cleanup", "log", error);
  return Return(log->log->Cleanup(Lsn(lsn)), error);
}

alpheus_code alpheus_log_cleanup_through(alpheus_log* log, uint64_t lsn,
                                         alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_cleanup_through", "log", error);
  }
  return Return(log->log->CleanupThrough(Lsn(lsn)), error);
}

alpheus_code alpheus_log_cleanup_all(alpheus_log* log,
                                     alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_cleanup_all", "log", error);
  }
  return Return(log->log->CleanupAll(), error);
}

alpheus_code alpheus_log_check_payloads(const alpheus_log* log,
                                        alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_check_payloads", "log", error);
  }
  return Return(log->log->CheckPayloads(), error);
}

const alpheus_recovery_report* alpheus_log_report(
    const alpheus_log* log) noexcept {
  return log == nullptr ? nullptr : log->report.get();
}

}  // extern "C"
