// SPDX-License-Identifier: Apache-2.0
// Each tenant is one thread with a log of its own; the tenants of one candidate
// run at once.
#include <memory>
#include <string>
#include <utility>

#include "bench/local/candidates/contestants.h"
#include "bench/local/candidates/floor.h"
#include "bench/local/scenarios/rate_contest.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

class Tenants final : public Candidate {
 public:
  static absl::StatusOr<std::unique_ptr<Candidate>> Make(
      const MakeCandidate& maker, int tenants, const Workload& workload) {
    ALPHEUS_ASSIGN_OR_RETURN(
        Candidates logs,
        MakeAll(std::vector<MakeCandidate>(tenants, maker), workload));
    return std::make_unique<Tenants>(std::move(logs));
  }

  explicit Tenants(Candidates logs) : logs_(std::move(logs)) {}

  std::string name() const override { return logs_.front()->name(); }

  absl::StatusOr<BatchResult> Run(int worker, uint64_t ops) override {
    return logs_[worker]->Run(0, ops);
  }

 private:
  const Candidates logs_;
};

absl::Status MeasureSize(const Settings& settings, uint64_t bytes,
                         Report* report) {
  const Workload workload{.folder = settings.folder,
                          .ring_bytes = settings.tenant_ring_bytes,
                          .payload_bytes = bytes};
  std::vector<MakeCandidate> makers = Floors();
  for (MakeCandidate& maker : Logs()) makers.push_back(std::move(maker));
  Candidates candidates;
  for (const MakeCandidate& maker : makers) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Candidate> tenants,
                             Tenants::Make(maker, settings.tenants, workload));
    candidates.push_back(std::move(tenants));
  }
  ALPHEUS_RETURN_IF_ERROR(
      WarmUp(candidates, settings.tenants, workload.ring_bytes / bytes + 1));
  return MeasureRates(settings, "tenants", candidates, {settings.tenants},
                      bytes, report);
}

}  // namespace

absl::Status MeasureTenants(const Settings& settings, Report* report) {
  for (const uint64_t bytes : settings.tenant_sizes) {
    ALPHEUS_RETURN_IF_ERROR(MeasureSize(settings, bytes, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
