// SPDX-License-Identifier: Apache-2.0
// followers: readers of a served log, in this process and in others.
#ifndef ALPHEUS_BENCH_SERVICE_CONTESTANTS_FOLLOWERS_H_
#define ALPHEUS_BENCH_SERVICE_CONTESTANTS_FOLLOWERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/service/load/followed.h"

namespace alpheus::bench::service {

inline constexpr const char* kReaderKind = "reader";

// Makes readers by the service's client.
MakeFollower FollowersOf(const std::vector<std::string>& addresses,
                         const std::string& log);

// Starts a process that follows a log from this LSN on with credit for more
// than its ring, and takes its first record. Errors: Unavailable.
absl::StatusOr<replicated::OwnProcess> StartReader(
    const std::vector<std::string>& addresses, const std::string& log,
    uint64_t from_lsn);
// `bench_service reader LOG FROM_LSN ADDRESS...`; reads until it is killed.
// Errors: as LogReader::Next; InvalidArgument.
absl::Status ServeReader(const std::vector<std::string>& words);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CONTESTANTS_FOLLOWERS_H_
