// SPDX-License-Identifier: Apache-2.0
#include "bench/local/scenarios/rate_contest.h"
#include "bench/ordered_store/contest.h"
#include "bench/ordered_store/scenarios.h"
#include "bench/ordered_store/zipfian.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {

absl::Status MeasureRmw(const Settings& settings, std::string_view scenario,
                        Report* report) {
  const double skew = scenario == kZipfian ? kYcsbSkew : 0;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Contest> contest,
                           Contest::Make(settings, skew));
  // A lap of each log, so that all its pages are mapped.
  const auto workers = static_cast<uint64_t>(settings.threads.back());
  const uint64_t lap = settings.ring_bytes / sizeof(Change) + 1;
  ALPHEUS_RETURN_IF_ERROR(
      WarmUp(contest->candidates(), settings.threads.back(), lap / workers));
  bench::Settings slices;
  slices.rounds = settings.rounds;
  slices.slice_ns = settings.slice_ns;
  slices.slices = settings.slices;
  return MeasureRates(slices, std::string(scenario), contest->candidates(),
                      settings.threads, sizeof(Change), report);
}

}  // namespace alpheus::bench::ordered_store
