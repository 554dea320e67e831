// SPDX-License-Identifier: Apache-2.0
#include "bench/local/pmemlog_candidate.h"

#include <libpmemlog.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/local/region_file.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

// Header pages in front of the records of a pool.
constexpr uint64_t kPoolHeaderBytes = 8192;
constexpr mode_t kPoolMode = 0600;

absl::Status PoolError(const char* call) {
  return absl::UnavailableError(
      absl::StrCat("libpmemlog: ", call, ": ", pmemlog_errormsg()));
}

class PmemlogCandidate final : public Candidate {
 public:
  PmemlogCandidate(PMEMlogpool* pool, uint64_t payload_bytes)
      : pool_(pool), payload_(payload_bytes, std::byte{0x5a}) {}
  ~PmemlogCandidate() override { pmemlog_close(pool_); }

  std::string name() const override { return "libpmemlog"; }

  absl::StatusOr<BatchResult> Run(uint64_t ops) override {
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) {
      if (Append()) [[likely]]
        continue;
      if (errno != ENOSPC) return PoolError("pmemlog_append");
      Reclaim(&result);
      if (!Append()) return PoolError("pmemlog_append");
    }
    result.append_ns = NowNanos() - start - result.reclaim_elapsed_ns;
    return result;
  }

 private:
  bool Append() {
    return pmemlog_append(pool_, payload_.data(), payload_.size()) == 0;
  }

  void Reclaim(BatchResult* result) {
    const int64_t start = NowNanos();
    const int64_t cpu_start = ThreadCpuNanos();
    result->reclaimed_records +=
        static_cast<uint64_t>(pmemlog_tell(pool_)) / payload_.size();
    pmemlog_rewind(pool_);
    result->reclaim_ns += ThreadCpuNanos() - cpu_start;
    result->reclaim_elapsed_ns += NowNanos() - start;
    ++result->reclaims;
  }

  PMEMlogpool* const pool_;
  const std::vector<std::byte> payload_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Candidate>> MakePmemlogCandidate(
    const Workload& workload) {
  const std::string path = RegionFilePath(workload, "libpmemlog");
  PMEMlogpool* const pool = pmemlog_create(
      path.c_str(), workload.ring_bytes + kPoolHeaderBytes, kPoolMode);
  if (pool == nullptr) return PoolError("pmemlog_create");
  RemoveRegionFile(path);
  return std::make_unique<PmemlogCandidate>(pool, workload.payload_bytes);
}

}  // namespace alpheus::bench
