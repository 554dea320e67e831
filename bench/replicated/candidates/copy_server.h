// SPDX-License-Identifier: Apache-2.0
// copy_server: a process that sends the ring of a replica's file to whoever
// connects: what fetching a log must cost at least over TCP.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_COPY_SERVER_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_COPY_SERVER_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kCopyKind = "copy";

// Process of that kind: sends the ring of the replica `path`, once.
absl::Status ServeCopy(const std::string& path);

// All that fills `into`, from the server at that address (its port).
// Errors: Unavailable, OutOfRange (it has ended before).
absl::Status FetchCopy(const std::string& address, std::span<std::byte> into);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_COPY_SERVER_H_
