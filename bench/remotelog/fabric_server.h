// SPDX-License-Identifier: Apache-2.0
// fabric_server: the server's end of REMOTELOG over a fabric: the log's memory,
// and a responder for each connection.
//
// Idea: the executor of replication (update_responder.h) runs the steps of the
// responder, behind a turn that only takes completions. The transport decides
// which thread calls the turn, its own or the client's.
//
//   memory    for each client: tail, a line; kRecordSlots records of a line;
//             receive buffers, if they are in persistent memory
//
// Thread safety: one thread at a time.
// References: remote persistence taxonomy §4.1; docs/results/remotelog.md.
#ifndef ALPHEUS_BENCH_REMOTELOG_FABRIC_SERVER_H_
#define ALPHEUS_BENCH_REMOTELOG_FABRIC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/remotelog/append_transport.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/pmem/libpmem_persistence.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/message_log.h"
#include "replication/persist/execute/update_requester.h"
#include "replication/persist/execute/update_responder.h"

namespace alpheus::bench::remotelog {

inline constexpr uint64_t kRecordSlots = 256;
inline constexpr uint32_t kCredits = 64;
// A line before the bytes of a message; record and tail; whole lines.
inline constexpr uint64_t kSlotBytes = 3 * kLineBytes;
inline constexpr uint64_t kLogBytes = kLineBytes + kRecordSlots * kRecordBytes;
inline constexpr uint64_t kBuffersBytes =
    replication::MessageLog<LibpmemPersistence>::AreaBytes(kCredits,
                                                           kSlotBytes);
inline constexpr uint64_t kClientBytes = kLogBytes + kBuffersBytes;

// Returns the place of the n-th append, from 1, in a client's part.
constexpr uint64_t PlaceOfRecord(uint64_t append) {
  return kLineBytes + append % kRecordSlots * kRecordBytes;
}

class FabricServer {
 public:
  // Times for messages, and after them.
  struct Times {
    double messages = 0;  // nanoseconds until they were answered
    double background = 0;
  };

  // `memory` is the clients', with a part and its key for each; all must
  // outlive it.
  FabricServer(fabric::Fabric& fabric, std::span<std::byte> memory,
               std::span<const fabric::RegionKey> keys, const Clock& clock)
      : fabric_(fabric), memory_(memory), keys_(keys), clock_(clock) {}

  static constexpr replication::SessionId kSession{0x10d};

  // Accepts a client that asked for a connection. Errors: the responder's.
  absl::Status Accept(const AppendRun& run, uint64_t client,
                      fabric::ConnectionId connection);
  // Takes pending events; returns whether there were any. Errors: the
  // responder's.
  absl::StatusOr<bool> Turn();
  // Returns the number of messages taken, of all clients.
  uint64_t received() const { return received_; }
  const Times& times() const { return times_; }

  // Applies the updates that messages left. Errors: the medium's.
  absl::Status ApplyAll();
  // Closes all connections. Errors: DataLoss (the last records of a client are
  // not in their places, or its tail is not).
  absl::Status Finish(bool is_compound, uint64_t appends);

 private:
  struct Client {
    uint64_t number;
    std::unique_ptr<replication::UpdateResponder<LibpmemPersistence>> responder;
  };

  std::span<std::byte> PartOf(uint64_t client) const {
    return memory_.subspan(client * kClientBytes, kClientBytes);
  }
  absl::Status OnCompletion(Client& client,
                            const fabric::Completion& completion);
  absl::Status Check(uint64_t client, bool is_compound, uint64_t appends) const;

  fabric::Fabric& fabric_;
  const std::span<std::byte> memory_;
  const std::span<const fabric::RegionKey> keys_;
  const Clock& clock_;
  LibpmemPersistence pmem_{{.auto_flush = false}};
  std::map<fabric::ConnectionId, Client> clients_;
  std::vector<fabric::ConnectionEvent> events_;
  uint64_t received_ = 0;
  Times times_;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_FABRIC_SERVER_H_
