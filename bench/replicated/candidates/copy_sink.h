// SPDX-License-Identifier: Apache-2.0
// copy_sink: a process that takes bytes over a socket into a region, persists
// them and reads them once: what bringing a replica up to date must cost at
// least over TCP.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_COPY_SINK_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_COPY_SINK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kSinkKind = "sink";

// Process of that kind: takes `bytes` bytes once, into a file in `folder`, and
// says when all are persistent and summed.
absl::Status ServeSink(const std::string& folder, uint64_t bytes);

// Sends all of `bytes` to the sink at that address (its port), and waits until
// it says so. Requires: as many as it was started for.
// Errors: Unavailable, OutOfRange (it has ended before).
absl::Status FillSink(const std::string& address,
                      std::span<const std::byte> bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_COPY_SINK_H_
