// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/peers/etcd.h"
#include "bench/replicated/peers/redis.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr int kPeerBackups = 2;  // three copies: the usual number

absl::Status MeasureWithQuorum(const Settings& settings, int quorum,
                               Report* report) {
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = kPeerBackups,
                  .write_quorum = quorum};
  ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                           MakeCandidates({{kFloorName, Floor()},
                                           {kAlpheusName, Alpheus()},
                                           {kRedisName, Redis()},
                                           {kEtcdName, Etcd()}},
                                          work, "peers", report));
  for (const uint64_t bytes : settings.peer_sizes) {
    for (const Waiting waiting : {Waiting::kSpin, Waiting::kBlock}) {
      // As many of each, since what a peer takes is far more.
      const Contest contest{
          .scenario = "peers",
          .parameters = {{"backups", kPeerBackups},
                         {"quorum", static_cast<uint64_t>(quorum)}},
          .bytes = bytes,
          .waiting = waiting,
          .warm_up_ops = settings.warm_up_ops / 4,
          .ops = settings.block_ops};
      ALPHEUS_RETURN_IF_ERROR(
          RunContest(settings.rounds, candidates, contest, report));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePeers(const Settings& settings, Report* report) {
  for (const int quorum : settings.peer_quorums) {
    ALPHEUS_RETURN_IF_ERROR(MeasureWithQuorum(settings, quorum, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
