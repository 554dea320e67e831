// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/interleave.h"
#include "bench/harness/workers.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr uint64_t kTenantPayloadBytes = 64;
constexpr uint64_t kTenantRingBytes = uint64_t{2} << 20;

struct TenantsRun {
  Work work;
  int tenants = 1;
  uint64_t ops = 0;  // of each
  std::vector<int> cores;
};

using Append = std::function<absl::Status(int tenant)>;

// Records per second of all.
absl::StatusOr<double> RateOf(const TenantsRun& run, const Append& append) {
  const auto work = [&](int tenant) -> absl::Status {
    for (uint64_t i = 0; i < run.ops; ++i) {
      ALPHEUS_RETURN_IF_ERROR(append(tenant));
    }
    return absl::OkStatus();
  };
  ALPHEUS_ASSIGN_OR_RETURN(const int64_t elapsed_ns,
                           RunTogether(run.tenants, run.cores, work));
  return static_cast<double>(run.ops) * run.tenants * 1e9 /
         static_cast<double>(elapsed_ns);
}

// A socket and a backup process for each: sockets know of nothing to share.
absl::StatusOr<double> RunFloors(const TenantsRun& run) {
  std::vector<std::unique_ptr<Candidate>> floors;
  for (int i = 0; i < run.tenants; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Candidate> floor,
                             Floor()(run.work));
    ALPHEUS_RETURN_IF_ERROR(floor->Begin(kTenantPayloadBytes, Waiting::kBlock));
    floors.push_back(std::move(floor));
  }
  return RateOf(run, [&](int tenant) {
    return floors[static_cast<size_t>(tenant)]->Append();
  });
}

// One backup node keeps all logs.
absl::StatusOr<double> RunLogs(const TenantsRun& run) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<AlpheusCluster> cluster,
      AlpheusCluster::Start({}, run.work, Waiting::kBlock, run.tenants));
  std::vector<std::unique_ptr<Log>> logs;
  for (int i = 0; i < run.tenants; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> log, cluster->Open(i));
    logs.push_back(std::move(log));
  }
  const std::string payload(kTenantPayloadBytes, 'Z');
  const auto append = [&](int tenant) -> absl::Status {
    Log& log = *logs[static_cast<size_t>(tenant)];
    const absl::StatusOr<Lsn> lsn = log.Append(payload);
    if (!absl::IsResourceExhausted(lsn.status())) return lsn.status();
    ALPHEUS_RETURN_IF_ERROR(log.CleanupThrough(log.durable_lsn()));
    return log.Append(payload).status();
  };
  ALPHEUS_ASSIGN_OR_RETURN(const double rate, RateOf(run, append));
  for (const auto& log : logs) ALPHEUS_RETURN_IF_ERROR(log->Close());
  return rate;
}

}  // namespace

absl::Status MeasureTenants(const Settings& settings, Report* report) {
  for (const int tenants : settings.tenants) {
    const TenantsRun run{
        .work = {.folder = settings.folder, .ring_bytes = kTenantRingBytes},
        .tenants = tenants,
        .ops = settings.tenant_ops / static_cast<uint64_t>(tenants),
        .cores = report->machine.cores};
    std::vector<std::vector<double>> rates(2);
    ALPHEUS_RETURN_IF_ERROR(
        Interleave(settings.rounds, 2, [&](size_t i) -> absl::Status {
          ALPHEUS_ASSIGN_OR_RETURN(const double rate,
                                   i == 0 ? RunFloors(run) : RunLogs(run));
          rates[i].push_back(rate);
          return absl::OkStatus();
        }));
    for (size_t i = 0; i < 2; ++i) {
      report->measurements.push_back(
          {.scenario = "tenants",
           .candidate = i == 0 ? kFloorName : kAlpheusName,
           .metric = "rate",
           .unit = "records/s",
           .parameters = {{"tenants", static_cast<uint64_t>(tenants)},
                          {"bytes", kTenantPayloadBytes}},
           .samples = rates[i],
           .details = {}});
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
