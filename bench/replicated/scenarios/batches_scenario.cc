// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/peers/redis.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr int kBatchBackups = 2;
constexpr uint64_t kBatchRecords = 16;
constexpr uint64_t kBatchPayloadBytes = 64;

}  // namespace

absl::Status MeasureBatches(const Settings& settings, Report* report) {
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = kBatchBackups,
                  .batch = kBatchRecords};
  for (const Waiting waiting : {Waiting::kSpin, Waiting::kBlock}) {
    const Contest contest{
        .scenario = "batches",
        .parameters = {{"backups", kBatchBackups}, {"batch", kBatchRecords}},
        .bytes = kBatchPayloadBytes,
        .waiting = waiting,
        .warm_up_ops = settings.warm_up_ops / 4,
        .ops = settings.block_ops};
    ALPHEUS_RETURN_IF_ERROR(MeasureOne(settings.rounds,
                                       {{kFloorName, Floor()},
                                        {kAlpheusName, Alpheus()},
                                        {kRedisName, Redis()}},
                                       work, contest, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
