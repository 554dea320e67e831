// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/perf_counter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::bench {
namespace {

perf_event_attr Attributes(CacheMiss kind) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format =
      PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  if (kind == CacheMiss::kLastLevel) {
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_CACHE_MISSES;
  } else {
    attributes.type = PERF_TYPE_HW_CACHE;
    attributes.config = PERF_COUNT_HW_CACHE_L1D |
                        (PERF_COUNT_HW_CACHE_OP_READ << 8) |
                        (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
  }
  return attributes;
}

absl::Status StartError(CacheMiss kind, int error) {
  const std::string message = absl::StrCat(
      "perf_event_open of ", CacheMissName(kind), ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return absl::UnimplementedError(absl::StrCat(
          message, "; this processor, or its hypervisor, does not count it"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(message,
                       "; root or sysctl kernel.perf_event_paranoid=1 lets a "
                       "process count itself"));
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

const char* CacheMissName(CacheMiss kind) {
  return kind == CacheMiss::kL1dRead ? "L1d read misses" : "last-level misses";
}

absl::StatusOr<PerfCounter> PerfCounter::Start(CacheMiss kind) {
  perf_event_attr attributes = Attributes(kind);
  const int64_t fd =
      syscall(SYS_perf_event_open, &attributes, /*pid=*/0, /*cpu=*/-1,
              /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return StartError(kind, errno);
  return PerfCounter(static_cast<int>(fd));
}

PerfCounter::PerfCounter(PerfCounter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

PerfCounter::~PerfCounter() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<uint64_t> PerfCounter::Read() const {
  struct {
    uint64_t count;
    uint64_t enabled_ns;
    uint64_t running_ns;
  } value{};
  if (read(fd_, &value, sizeof(value)) != sizeof(value)) {
    return absl::UnavailableError(
        absl::StrCat("read of a perf event: ", std::strerror(errno)));
  }
  if (value.running_ns == 0) {
    return absl::UnavailableError(
        "the perf event never ran: all counters are taken by others");
  }
  // Counters may be shared by turns.
  return static_cast<uint64_t>(static_cast<double>(value.count) *
                               static_cast<double>(value.enabled_ns) /
                               static_cast<double>(value.running_ns));
}

}  // namespace alpheus::bench
