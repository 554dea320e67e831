// SPDX-License-Identifier: Apache-2.0
// log_image: the file of a full log as a crash leaves it.
#ifndef ALPHEUS_BENCH_LOCAL_SCENARIOS_LOG_IMAGE_H_
#define ALPHEUS_BENCH_LOCAL_SCENARIOS_LOG_IMAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"

namespace alpheus::bench {

inline constexpr uint64_t kMiB = 1 << 20;

absl::Status CopyFile(const std::string& from, const std::string& to);

// Fills a log of Alpheus to the brim with records of workload.payload_bytes and
// copies its file to `image` while it is open. Returns the number of records.
absl::StatusOr<uint64_t> WriteLogImage(const Workload& workload,
                                       const std::string& image);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_SCENARIOS_LOG_IMAGE_H_
