// SPDX-License-Identifier: Apache-2.0
// work_request: a posted operation, as one value.
//
// Idea: an adapter handles all posted operations alike (checks, queue, order,
// completion), so that the seven calls of a fabric are one call here.
//
// Thread safety: values; WorkRequestFabric's is that of its Post.
#ifndef ALPHEUS_REPLICATION_FABRIC_WORK_REQUEST_H_
#define ALPHEUS_REPLICATION_FABRIC_WORK_REQUEST_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct WorkRequest {
  Operation operation = Operation::kWrite;
  WorkId work{};
  LocalBytes local{};  // source or target
  RemoteAddress remote{};
  uint64_t range_bytes = 0;       // range of a flush
  uint32_t immediate = 0;         // for a write with immediate
  bool is_atomic_write = false;   // posted by PostWriteAtomic
  uint64_t operands[2] = {0, 0};  // compare and swap: expected, desired; add
};

// Checks what Fabric requires of the request itself: an atomic's alignment, a
// message's length. Errors: InvalidArgument.
absl::Status CheckWorkRequest(const WorkRequest& request,
                              uint64_t message_bytes_max);

// Errors of Fabric that are the same in all adapters.
absl::Status NoConnection(ConnectionId id);
absl::Status CheckPrivateData(std::string_view data, uint32_t bytes_max);

class WorkRequestFabric : public Fabric {
 public:
  absl::Status PostWrite(ConnectionId connection, WorkId work, LocalBytes from,
                         RemoteAddress to) final;
  absl::Status PostWriteImmediate(ConnectionId connection, WorkId work,
                                  LocalBytes from, RemoteAddress to,
                                  uint32_t immediate) final;
  absl::Status PostRead(ConnectionId connection, WorkId work, LocalBytes into,
                        RemoteAddress from) final;
  absl::Status PostCompareSwap(ConnectionId connection, WorkId work,
                               LocalBytes into, RemoteAddress word,
                               uint64_t expected, uint64_t desired) final;
  absl::Status PostFetchAdd(ConnectionId connection, WorkId work,
                            LocalBytes into, RemoteAddress word,
                            uint64_t add) final;
  absl::Status PostFlush(ConnectionId connection, WorkId work,
                         RemoteAddress range, uint64_t bytes) final;
  absl::Status PostSend(ConnectionId connection, WorkId work,
                        LocalBytes from) final;

 private:
  // Errors: as Fabric's posting.
  virtual absl::Status Post(ConnectionId id, const WorkRequest& request) = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_FABRIC_WORK_REQUEST_H_
