// SPDX-License-Identifier: Apache-2.0
// fabric_transport: appends over connections of a fabric, timed by a clock.
//
// Idea: both ends are the executors of replication (update_requester.h,
// update_responder.h), so that the timed code is the real one; nothing here
// knows the meaning of a step. Each run has connections of its own, which are
// closed after it. The last records of each client are checked in the server's
// memory: nothing counts that did not arrive.
//
// The fabric does not know the platform of a row, domain and DDIO: a row runs
// on the present hardware, and its time is that of its steps.
//
// Thread safety: none. With Ends::pass the calling thread does everything; else
// the server has a thread of its own while appends are in flight.
// References: remote persistence taxonomy §4.1, §4.2;
// docs/results/remotelog.md.
#ifndef ALPHEUS_BENCH_REMOTELOG_FABRIC_TRANSPORT_H_
#define ALPHEUS_BENCH_REMOTELOG_FABRIC_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/remotelog/append_transport.h"
#include "bench/remotelog/fabric_server.h"
#include "log/base/clock.h"
#include "replication/fabric/fabric.h"

namespace alpheus::bench::remotelog {

class FabricTransport final : public AppendTransport {
 public:
  // Ends; all must outlive the transport.
  struct Ends {
    fabric::Fabric& client;
    fabric::Fabric& server;
    const Clock& clock;
    std::string listen_address;
    // Memory of the server, kClientBytes for each client.
    std::span<std::byte> memory;
    // True if that is persistent memory: then rows with their receive buffers
    // there run.
    bool is_pmem = false;
    uint64_t warm_up = 0;  // appends of each client before those that count
    // Called between turns of both ends by the calling thread; returns false if
    // nothing will happen by itself.
    std::function<bool()> pass = {};
  };

  // Makes a transport. Errors: the fabrics'.
  static absl::StatusOr<std::unique_ptr<FabricTransport>> Make(Ends ends);
  ~FabricTransport() override;

  // Runs the appends. Errors: Unimplemented (an atomic WRITE without support of
  // the adapter; receive buffers in persistent memory, and there is none);
  // FailedPrecondition (the steps never end; only with Ends::pass);
  // InvalidArgument (more clients than the memory is for); Unavailable (no
  // connection); the executors'.
  absl::StatusOr<AppendTimes> Append(const AppendRun& run) override;

 private:
  class Client;

  explicit FabricTransport(Ends ends);
  absl::Status CheckRuns(const AppendRun& run) const;
  absl::Status Connect(const AppendRun& run);
  absl::StatusOr<fabric::ConnectionId> Await(
      fabric::Fabric& fabric, fabric::ConnectionEvent::Kind kind);
  absl::Status AppendAll(uint64_t appends, bool is_timed, AppendTimes* times);
  absl::Status RunClients(uint64_t appends, bool is_timed, AppendTimes* times);
  absl::StatusOr<bool> TurnClients();
  absl::Status Drain(const AppendRun& run, uint64_t appends);
  absl::Status Idle(bool had_any);
  absl::Status Close(const AppendRun& run, uint64_t appends);

  const Ends ends_;
  std::string address_;
  std::vector<fabric::RegionKey> keys_;  // of the server's memory, by client
  std::unique_ptr<FabricServer> server_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<fabric::ConnectionEvent> events_;
  int idle_turns_ = 0;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_FABRIC_TRANSPORT_H_
