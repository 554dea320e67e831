// SPDX-License-Identifier: Apache-2.0
// pmemlog_candidate: libpmemlog of PMDK, the peer that everybody has: a lock
// around append, no header, no checksum, and two persists, of the bytes and of
// the tail. A full log is rewound.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_PMEMLOG_CANDIDATE_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_PMEMLOG_CANDIDATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"

namespace alpheus::bench {

// An open pool. Of libpmemlog's calls it has those that are measured.
class PmemlogPool {
 public:
  // Errors: Unavailable (what libpmemlog says).
  static absl::StatusOr<PmemlogPool> Create(const std::string& path,
                                            uint64_t bytes);
  static absl::StatusOr<PmemlogPool> Open(const std::string& path);

  // Durable when it returns. False: full, or an error (errno).
  bool Append(std::span<const std::byte> payload) {
    return AppendTo(pool_.get(), payload);
  }
  void Rewind();
  uint64_t UsedBytes() const;
  // Hands out all bytes, `chunk` at a time; returns the number of chunks.
  uint64_t Walk(uint64_t chunk) const;

 private:
  using Handle = std::unique_ptr<void, void (*)(void*)>;
  explicit PmemlogPool(Handle pool) : pool_(std::move(pool)) {}
  static bool AppendTo(void* pool, std::span<const std::byte> payload);

  Handle pool_;  // a PMEMlogpool
};

// A fresh pool with room for workload.ring_bytes.
absl::StatusOr<std::unique_ptr<Candidate>> MakePmemlogCandidate(
    const Workload& workload);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_PMEMLOG_CANDIDATE_H_
