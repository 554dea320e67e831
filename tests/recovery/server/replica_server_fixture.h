// SPDX-License-Identifier: Apache-2.0
// replica_server_fixture: helpers for the tests of the server of replicas, on
// top of served_world.h.
#ifndef ALPHEUS_TESTS_RECOVERY_SERVER_REPLICA_SERVER_FIXTURE_H_
#define ALPHEUS_TESTS_RECOVERY_SERVER_REPLICA_SERVER_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/recovery/server/served_world.h"

namespace alpheus::testing {

inline constexpr int64_t kMillisecond = 1'000'000;

ServedWorld::Options Seeded(uint64_t seed);
ServedWorld::Options WithLogB();

// Why the request failed; OK if it did not.
absl::StatusCode FailedWith(const std::optional<recovery::Message>& reply);

// Returns the log's payloads after a power cut that keeps the least.
std::vector<std::string> PayloadsAfterACut(ServedWorld& world, Uuid log_id);
Lsn ProvenAfterACut(ServedWorld& world, Uuid log_id);

// Appends a record, and waits until the node has acknowledged it.
void Replicate(ServedWorld& world, Peer& peer, PrimaryLog& log,
               std::string_view text);

// A new connection of host 1 with a session of epoch 5, in which one record,
// "a", was appended and acknowledged.
Peer& SessionWithOneRecord(ServedWorld& world, PrimaryLog& log);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_SERVER_REPLICA_SERVER_FIXTURE_H_
