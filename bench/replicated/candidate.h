// SPDX-License-Identifier: Apache-2.0
// candidate: something that makes a record persistent here and on backups, one
// record at a time, to be timed.
//
// All have the same work: the whole lines of a record (48-byte header and
// payload) reach this process's replica and each backup, are flushed and fenced
// there, and each backup says so. All wait in the same way at both ends, which
// makes more of a difference than anything else.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATE_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::replicated {

enum class Waiting : uint32_t {
  kBlock = 0,  // in the kernel, until something comes: no core is used
  kSpin = 1,   // asks again and again and gives way (sched_yield) in between
};

// What all candidates of one comparison have in common.
struct Work {
  std::string folder;       // of the region files
  uint64_t ring_bytes = 0;  // of each replica
  int backups = 1;
};

class Candidate {
 public:
  virtual ~Candidate() = default;

  virtual std::string name() const = 0;

  // A turn: Begin, any number of Append, End. Between turns its backups wait
  // in the kernel, so that they take no core from others.
  // Errors of all: Unavailable (what was said by, or became of, a backup).
  virtual absl::Status Begin(uint64_t payload_bytes, Waiting waiting) = 0;
  // Returns when the record is persistent here and on every backup.
  virtual absl::Status Append() = 0;
  virtual absl::Status End() = 0;
};

using MakeCandidate =
    std::function<absl::StatusOr<std::unique_ptr<Candidate>>(const Work&)>;

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATE_H_
