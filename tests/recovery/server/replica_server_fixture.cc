// SPDX-License-Identifier: Apache-2.0
#include "tests/recovery/server/replica_server_fixture.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <variant>

#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {

ServedWorld::Options Seeded(uint64_t seed) {
  ServedWorld::Options options;
  options.network.seed = seed;
  return options;
}

ServedWorld::Options WithLogB() {
  ServedWorld::Options options;
  options.serve_b = true;
  return options;
}

absl::StatusCode FailedWith(const std::optional<recovery::Message>& reply) {
  if (reply && std::holds_alternative<recovery::Changed>(*reply)) {
    return recovery::RequestChanged().code();
  }
  if (!reply.has_value() || !std::holds_alternative<recovery::Failed>(*reply)) {
    return absl::StatusCode::kOk;
  }
  return std::get<recovery::Failed>(*reply).status.code();
}

std::vector<std::string> PayloadsAfterACut(ServedWorld& world, Uuid log_id) {
  std::vector<std::byte> left = world.pmem(log_id).CutKeepingNone();
  return LivePayloads(left);
}

Lsn ProvenAfterACut(ServedWorld& world, Uuid log_id) {
  std::vector<std::byte> left = world.pmem(log_id).CutKeepingNone();
  return ReadRegionState(left, "cut")->ProvenLsn();
}

void Replicate(ServedWorld& world, Peer& peer, PrimaryLog& log,
               std::string_view text) {
  const Lsn lsn = log.Append(text);
  ASSERT_TRUE(peer.session->Advance(log.End()).ok());
  world.Run(kMillisecond);
  ASSERT_TRUE(peer.session_status.ok()) << peer.session_status;
  ASSERT_EQ(peer.session->acked_lsn(), lsn);
}

Peer& SessionWithOneRecord(ServedWorld& world, PrimaryLog& log) {
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  Replicate(world, peer, log, "a");
  return peer;
}

}  // namespace alpheus::testing
