// SPDX-License-Identifier: Apache-2.0
// options: how a log is formatted, opened and forced.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "log/base/deadline.h"
#include "log/base/ids.h"

namespace alpheus {

struct FormatOptions {
  // File to create (on a DAX file system it is used as persistent memory), or
  // an existing device-DAX.
  std::string path = {};
  // Of the region, superline and epoch table included; at least 108 KiB.
  // 0 with a device-DAX: the whole device.
  uint64_t region_bytes = 64 << 20;
};

struct LogOptions {
  // Region file or device; empty: anonymous memory that lives and dies with
  // the Log (anonymous_bytes), for tests and scratch logs.
  std::string path = {};
  uint64_t anonymous_bytes = 64 << 20;
  // Refuse a region that holds another log.
  std::optional<Uuid> expected_log_id = std::nullopt;
  // Clean all records up to and including this LSN before the new epoch is
  // opened; the way out when the epoch table is full. 0: none.
  Lsn cleanup_through{0};
  // Cap on records reserved and not durable; rounded up to a power of two,
  // 2 to 1,048,576.
  uint32_t exposure_records_max = 4096;
  // Records that were completed and that nobody forced are forced after this
  // time, at most twice as long; a log that was idle so long notes its last
  // record as durable, so that damage to it is told from a torn write. A thread
  // of the log does it, which sleeps while the log is idle. 0: never, and no
  // thread.
  uint32_t idle_force_us = 100'000;
  // Added to each fence to emulate slower media, 0 to 1,000,000 ns; 0: off.
  // The papers use 150 and 200. Only where the medium is flushed by CPU
  // instructions.
  uint32_t emulated_latency_ns = 0;
};

struct ForceOptions {
  // Force only LSNs divisible by this; 1: every one. 0 is refused, and more
  // than half of LogOptions::exposure_records_max.
  uint32_t frequency = 1;
  // Group commit instead, if not 0: the record that is the group-th since the
  // last group forces all of them. Same limit; not together with frequency.
  uint32_t group = 0;
  Deadline deadline = {};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_
