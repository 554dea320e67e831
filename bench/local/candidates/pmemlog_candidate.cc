// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/pmemlog_candidate.h"

#include <libpmemlog.h>

#include <cerrno>
#include <span>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/harness/reclaim_timer.h"
#include "bench/harness/region_file.h"
#include "bench/harness/source.h"
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

PMEMlogpool* Pool(void* handle) { return static_cast<PMEMlogpool*>(handle); }

void ClosePool(void* handle) { pmemlog_close(Pool(handle)); }

int CountChunk(const void* /*bytes*/, size_t /*size*/, void* count) {
  ++*static_cast<uint64_t*>(count);
  return 1;
}

class PmemlogCandidate final : public Candidate {
 public:
  PmemlogCandidate(PmemlogPool pool, uint64_t payload_bytes)
      : pool_(std::move(pool)), payload_(SourceBytes(payload_bytes)) {}

  std::string name() const override { return "libpmemlog"; }

  absl::StatusOr<BatchResult> Run(int /*worker*/, uint64_t ops) override {
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) {
      // Another worker may fill what this one has rewound.
      while (!pool_.Append(payload_)) {
        if (errno != ENOSPC) return PoolError("pmemlog_append");
        Reclaim(&result);
      }
    }
    result.append_ns = NowNanos() - start - result.reclaim_elapsed_ns;
    return result;
  }

 private:
  void Reclaim(BatchResult* result) {
    const ReclaimTimer timer(result);
    result->reclaimed_records += pool_.UsedBytes() / payload_.size();
    pool_.Rewind();
  }

  PmemlogPool pool_;
  const std::span<const std::byte> payload_;
};

}  // namespace

absl::StatusOr<PmemlogPool> PmemlogPool::Create(const std::string& path,
                                                uint64_t bytes) {
  Handle pool(pmemlog_create(path.c_str(), bytes + kPoolHeaderBytes, kPoolMode),
              ClosePool);
  if (pool == nullptr) return PoolError("pmemlog_create");
  return PmemlogPool(std::move(pool));
}

absl::StatusOr<PmemlogPool> PmemlogPool::Open(const std::string& path) {
  Handle pool(pmemlog_open(path.c_str()), ClosePool);
  if (pool == nullptr) return PoolError("pmemlog_open");
  return PmemlogPool(std::move(pool));
}

bool PmemlogPool::AppendTo(void* pool, std::span<const std::byte> payload) {
  return pmemlog_append(Pool(pool), payload.data(), payload.size()) == 0;
}

void PmemlogPool::Rewind() { pmemlog_rewind(Pool(pool_.get())); }

uint64_t PmemlogPool::UsedBytes() const {
  return static_cast<uint64_t>(pmemlog_tell(Pool(pool_.get())));
}

uint64_t PmemlogPool::Walk(uint64_t chunk) const {
  uint64_t count = 0;
  pmemlog_walk(Pool(pool_.get()), chunk, CountChunk, &count);
  return count;
}

absl::StatusOr<std::unique_ptr<Candidate>> MakePmemlogCandidate(
    const Workload& workload) {
  const ScratchFile file(RegionFilePath(workload, "libpmemlog"));
  ALPHEUS_ASSIGN_OR_RETURN(
      PmemlogPool pool, PmemlogPool::Create(file.path(), workload.ring_bytes));
  return std::make_unique<PmemlogCandidate>(std::move(pool),
                                            workload.payload_bytes);
}

}  // namespace alpheus::bench
