// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/alpheus/fail_over.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/failover/times.h"

namespace alpheus::bench::failover {

FailOver::FailOver(std::vector<const Notes*> programs)
    : programs_(std::move(programs)), failed_before_(FailedOpenings()) {}

uint64_t FailOver::FailedOpenings() const {
  uint64_t count = 0;
  for (const Notes* const program : programs_) {
    count += program->failed_openings.load();
  }
  return count;
}

absl::Status FailOver::CheckBegin() const {
  for (size_t i = 0; i < programs_.size(); ++i) {
    const Notes& program = *programs_[i];
    if (i != 0 && program.first_ack_ns.load() != 0) {
      return absl::AbortedError(
          absl::StrCat("the log changed hands before the fault: the program of "
                       "node ",
                       i + 1, " was primary"));
    }
    if (const uint64_t count = program.wrong_suspicions.load(); count != 0) {
      return absl::AbortedError(
          absl::StrCat("the program of node ", i + 1,
                       " suspected the primary wrongly before the fault, ",
                       count, " times: its silence has been lengthened"));
    }
  }
  if (FailedOpenings() != failed_before_) {
    return absl::AbortedError(
        "a program tried to open the log before the fault");
  }
  return absl::OkStatus();
}

const Notes* FailOver::Next(int64_t fault_ns) const {
  const Notes* next = nullptr;
  int64_t earliest = 0;
  for (const Notes* const program : programs_) {
    const int64_t at = program->first_ack_ns.load();
    if (at <= fault_ns || (next != nullptr && at >= earliest)) continue;
    next = program;
    earliest = at;
  }
  return next;
}

absl::StatusOr<Parts> FailOver::PartsOf(const Notes& next,
                                        int64_t fault_ns) const {
  const int64_t began_ns = next.began_ns.load();
  if (began_ns < fault_ns) {
    return absl::AbortedError(absl::StrCat(
        "the next primary began to open the log ",
        MillisBetween(began_ns, fault_ns), " ms before the fault"));
  }
  Parts parts;
  int64_t last = fault_ns;
  const auto until = [&](const char* part, int64_t at) {
    parts[part] = MillisBetween(last, at);
    last = at;
  };
  until("detection", began_ns);
  until("promises", next.promised_ns.load());
  until("choice", next.chosen_ns.load());
  until("repair", next.installed_ns.load());
  until("open", next.first_ack_ns.load());
  parts["total"] = MillisBetween(fault_ns, last);
  parts[kFailedOpenings] =
      static_cast<double>(FailedOpenings() - failed_before_);
  return parts;
}

}  // namespace alpheus::bench::failover
