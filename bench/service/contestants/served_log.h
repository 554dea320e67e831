// SPDX-License-Identifier: Apache-2.0
// served_log: appends by the service's client, to the log of a cluster or to a
// server that only echoes; and by bare streams to the latter.
//
// A log is cleaned while it is appended to, as often as an eighth of its ring
// was written; that is in the times.
#ifndef ALPHEUS_BENCH_SERVICE_CONTESTANTS_SERVED_LOG_H_
#define ALPHEUS_BENCH_SERVICE_CONTESTANTS_SERVED_LOG_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/client/grpc/log_client_options.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/load/appender.h"
#include "bench/service/load/contestant.h"

namespace alpheus::bench::service {

inline constexpr const char* kAlpheusName = "alpheus";
inline constexpr const char* kEchoName = "floor-echo";
inline constexpr const char* kClientEchoName = "echo by our client";

// Returns the client's options for a log of these nodes.
client::LogClientOptions ClientOptionsOf(
    const std::vector<std::string>& addresses, const std::string& log);

// Starts a client of the service. Errors: as LogClient::Start.
absl::StatusOr<std::unique_ptr<Appender>> StartClient(
    const client::LogClientOptions& options);

// The log of that cluster, which outlives the contestant.
std::unique_ptr<Contestant> ServedLog(const ServiceCluster& cluster);
// A server that echoes; by bare streams, or by the service's client. `pid` is
// its process.
std::unique_ptr<Contestant> Echo(const std::string& address, pid_t pid);
std::unique_ptr<Contestant> EchoByClient(const std::string& address, pid_t pid);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CONTESTANTS_SERVED_LOG_H_
