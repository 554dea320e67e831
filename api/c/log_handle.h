// SPDX-License-Identifier: Apache-2.0
// log_handle: the object behind an alpheus_log of the C interface.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_C_LOG_HANDLE_H_
#define ALPHEUS_API_C_LOG_HANDLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "alpheus/alpheus.h"
#include "alpheus/log.h"
#include "api/c/open_reservations.h"
#include "api/c/views.h"

// Named as in alpheus.h.
struct alpheus_log {
  alpheus_log(std::unique_ptr<alpheus::Log> opened,
              uint32_t exposure_records_max)
      : log(std::move(opened)),
        reservations(exposure_records_max),
        report(log->report()) {}

  const std::unique_ptr<alpheus::Log> log;
  alpheus::c::OpenReservations reservations;
  // Cursors that were not finished: they point into the log.
  std::atomic<uint64_t> cursors{0};
  const alpheus::c::ReportView report;
};

#endif  // ALPHEUS_API_C_LOG_HANDLE_H_
