// SPDX-License-Identifier: Apache-2.0
// candidate: something that makes a record persistent here and on backups, one
// record at a time, to be timed.
//
// All have the same work: the whole lines of a record (48-byte header and
// payload) reach this process's replica and each backup, are flushed and fenced
// there, and each backup says so. All wait in the same way at both ends, which
// makes more of a difference than anything else. Peers (etcd, Redis) have ways
// of their own: of them only this process waits as asked.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_CANDIDATE_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_CANDIDATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

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
  // Copies that must be persistent before a record counts, this process's
  // included; 0: all.
  int write_quorum = 0;
  uint64_t batch = 1;  // records of one Append, made persistent together
  // Of adapters with RDMA, the primary's first; none: all over TCP.
  std::vector<std::string> hosts = {};

  int copies() const { return write_quorum == 0 ? backups + 1 : write_quorum; }
};

class Candidate {
 public:
  virtual ~Candidate() = default;

  virtual std::string name() const = 0;
  // Whether its system calls are made where they are counted: in code that is
  // linked into this program.
  virtual bool is_counted() const { return true; }

  // A turn: Begin, any number of Append, End. Between turns its backups wait
  // in the kernel, so that they take no core from others.
  // Errors of all: Unavailable (what was said by, or became of, a backup).
  virtual absl::Status Begin(uint64_t payload_bytes, Waiting waiting) = 0;
  // Returns when a batch of records is persistent in as many places as asked.
  virtual absl::Status Append() = 0;
  virtual absl::Status End() = 0;
  // Between Appends: what comes next is measured.
  virtual void StartMeasuring() {}
  // Before End: what else it has measured of this turn, in ns.
  virtual void AddMetrics(std::map<std::string, double>*) const {}
};

using MakeCandidate =
    std::function<absl::StatusOr<std::unique_ptr<Candidate>>(const Work&)>;

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_CANDIDATE_H_
