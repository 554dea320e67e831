// SPDX-License-Identifier: Apache-2.0
// embedded: the log in this process, as a program on the primary's machine has
// it, with two nodes of alpheusd as backups: what an append costs without the
// service.
//
// The log and its nodes wait as a service's do.
#ifndef ALPHEUS_BENCH_SERVICE_CONTESTANTS_EMBEDDED_H_
#define ALPHEUS_BENCH_SERVICE_CONTESTANTS_EMBEDDED_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/service/load/contestant.h"

namespace alpheus::bench::service {

inline constexpr const char* kEmbeddedName = "floor-embedded";
inline constexpr const char* kEmbeddedCallbackName = "embedded by callback";

// How it learns that a record is durable.
enum class Learning {
  kByWaiting,   // Log::Append returns
  kByCallback,  // Log::OnDurable, on the log's own thread, as in the service
};

// Errors: Unavailable; as Log::Open.
absl::StatusOr<std::unique_ptr<Contestant>> Embedded(const std::string& parent,
                                                     uint64_t ring_bytes,
                                                     Learning learning);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CONTESTANTS_EMBEDDED_H_
