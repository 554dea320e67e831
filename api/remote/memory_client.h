// SPDX-License-Identifier: Apache-2.0
// memory_client: reads, compares and swaps, and updates memory that a node
// offers, over one connection.
//
// Idea: the connection proves a token and opens the regions that its options
// name; then operations are posted one-sided. An update is persisted by the
// plan of its region's platform (method_table.h, row of WRITE), which says
// whether the node's program takes part. A compare-and-swap shows at once, and
// is persistent once Persist of its word has ended well: for that, what follows
// the WRITE in the same plan is done.
//
// Invariants:
//   MCL1. Operations take effect in the order of their calls, but updates wait
//         for one another: a read sees the updates that have ended before it.
//   MCL2. An update that has ended with OK is persistent at the node, as far as
//         its platform was declared truly.
//   MCL3. Each call that returned OK ends exactly once, by its callback, in
//         Poll. An error of a callback comes after the first byte was posted,
//         unless it says that nothing was: the outcome of updates and
//         compare-and-swaps is unknown then. An error of the call itself comes
//         before: nothing was done.
//   MCL4. At most in_flight_max operations are in flight; memory is bounded.
//   MCL5. Nothing that a node says counts before it has proved that it has the
//         token's digest.
// Persistence: none here. A client that dies leaves any part of the updates
// that had not ended. Thread safety: one thread. Callbacks may call operations,
// and must not destroy the client. References: docs/formats/client_wire.md;
// docs/design/remote_memory.md.
#ifndef ALPHEUS_API_REMOTE_MEMORY_CLIENT_H_
#define ALPHEUS_API_REMOTE_MEMORY_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/remote/token_proof.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "recovery/protocol/client_messages.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/update_requester.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/wire/message_slots.h"

namespace alpheus::remote {

struct MemoryClientOptions {
  Uuid cluster_id;
  std::string log;    // name, as in the token
  std::string token;  // 1 to kMaskedTokenBytesMax bytes
  // Names of the regions; at least one in all, and each once. Regions have
  // numbers in this order, and the one for updates is the last.
  std::vector<std::string> read;
  std::string updated = {};  // empty: none
  // Operations in flight, and bytes of each.
  uint32_t in_flight_max = 16;
  uint64_t operation_bytes_max = 4096;
  // Nanoseconds until the connection, and an operation, count as failed.
  int64_t open_ns_max = 5'000'000'000;
  int64_t operation_ns_max = 10'000'000'000;
};

// Costs of the connection since it was open: operations by kind; what was
// posted for them, by either end; round trips, one after the other.
struct MemoryClientCounters {
  uint64_t reads = 0;
  uint64_t swaps = 0;
  uint64_t updates = 0;   // begun
  uint64_t persists = 0;  // begun
  uint64_t messages = 0;  // posted here
  uint64_t acks = 0;      // sent there
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t round_trips = 0;
};

class MemoryClient {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using Swapped = std::function<void(const absl::StatusOr<uint64_t>& found)>;

  // Starts to connect. All must outlive the client. `random` must be
  // unpredictable (EntropyRandom). Errors: InvalidArgument (options, or they
  // ask more than the fabric has); the fabric's.
  static absl::StatusOr<std::unique_ptr<MemoryClient>> Connect(
      fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
      std::string_view address, MemoryClientOptions options);
  // Closes the connection; callbacks that have not been called are dropped.
  ~MemoryClient();
  MemoryClient(const MemoryClient&) = delete;
  MemoryClient& operator=(const MemoryClient&) = delete;

  // Returns true once operations may be posted, until the connection breaks.
  bool is_open() const { return stage_ == Stage::kOpen; }
  // Returns why the connection is over; OK until then. Unauthenticated,
  // PermissionDenied, NotFound, Unimplemented and such: the node refused, and
  // nothing was done. Unavailable: not reached, or it broke.
  const absl::Status& status() const { return status_; }

  // Return what is known of the regions. Requires: is_open().
  uint64_t region_bytes(size_t region) const { return regions_[region].bytes; }
  // The platform by which updates are persisted, and their plan.
  const replication::Platform& platform() const {
    return regions_.back().platform;
  }
  std::span<const replication::Step> steps() const { return plan_.steps; }
  // The process whose memory it is; another one after a restart.
  NodeId node() const { return said_.welcome.node; }
  uint64_t incarnation() const { return said_.welcome.incarnation; }

  // Post operations on a region. `offset` counts from its start. Errors, with
  // nothing posted: FailedPrecondition (not open; not a region for updates),
  // ResourceExhausted (in_flight_max are in flight: wait for one),
  // InvalidArgument (no bytes, more than operation_bytes_max, outside the
  // region, a word not on a multiple of 8).
  //
  // Reads into `into`, which is written before `done` is called, and must live
  // until then. Words of 8 bytes are whole, and no more is.
  absl::Status Read(size_t region, uint64_t offset, std::span<std::byte> into,
                    Done done);
  // Replaces `expected` in a word of the region for updates, and tells what was
  // there. Atomic among clients, and not with the node's processor. Not
  // persistent: Persist does that.
  absl::Status CompareAndSwap(uint64_t offset, uint64_t expected,
                              uint64_t desired, Swapped done);
  // Writes bytes to the region for updates, and persists them. They are copied.
  // Words of 8 bytes are whole; a reader, and a power cut before the end, may
  // find a part, so the bytes must show whether they are whole.
  absl::Status Update(uint64_t offset, std::span<const std::byte> bytes,
                      Done done);
  // Persists what compare-and-swaps of this connection that have ended have put
  // there.
  absl::Status Persist(uint64_t offset, uint64_t bytes, Done done);

  // Take what the fabric's Poll brought. Return false if it is not this
  // client's.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);
  // Calls back, and looks at the clock. kDone: the connection is over, and all
  // callbacks were called.
  Polled Poll();
  Deadline NextPoll() const;

  size_t in_flight() const { return slots_.size() - free_.size(); }
  const MemoryClientCounters& counters() const { return counters_; }

 private:
  enum class Stage { kConnecting, kProving, kOpening, kOpen, kOver };
  enum class Kind { kRead, kSwap, kUpdate, kPersist };
  struct Region {
    fabric::RegionKey key;
    uint64_t bytes = 0;
    replication::Platform platform;
  };
  // An operation, in a slot of memory.
  struct Operation {
    Kind kind = Kind::kRead;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    std::span<std::byte> into = {};
    Done done = {};
    Swapped swapped = {};
    int64_t began_at = 0;
    bool is_taken = false;
    bool is_posted = false;
    bool is_over = false;  // waits for its callback
    absl::Status status = {};
  };

  MemoryClient(fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
               MemoryClientOptions options);

  static absl::Status Check(const MemoryClientOptions& options,
                            const fabric::Fabric::Limits& limits);
  absl::Status Prepare(std::string_view address);
  size_t region_count() const {
    return options_.read.size() + (options_.updated.empty() ? 0 : 1);
  }

  // Opening.
  absl::Status OnEstablished(const std::string& private_data);
  absl::Status Send(const recovery::ClientMessage& message);
  absl::Status OnMessage(const fabric::Completion& completion);
  absl::Status OnReply(const recovery::ClientMessage& message);
  absl::Status OpenNext();
  absl::Status OnOpened(const recovery::MemoryOpened& opened);

  // Operations.
  absl::Status CheckPlace(size_t region, uint64_t offset, uint64_t bytes,
                          bool is_update) const;
  absl::StatusOr<size_t> TakeSlot(Kind kind, uint64_t offset, uint64_t bytes);
  void GiveBack(size_t slot);
  absl::Status Posted(size_t slot, const absl::Status& posted);
  fabric::LocalBytes Memory(size_t slot) const;
  absl::Status PostUpdates();
  absl::Status OnUpdated(const fabric::Completion& completion);
  void OnOperation(size_t slot, const fabric::Completion& completion);
  void EndOf(size_t slot, const absl::Status& status);
  void CallBack(size_t slot);
  void Count(const Operation& operation);
  // Ends the connection. Operations that were posted end with `why`.
  void Break(const absl::Status& why);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  const MemoryClientOptions options_;
  const Uuid log_id_;
  const quorum::Digest digest_;  // of the token
  std::string address_;
  fabric::ConnectionId connection_;
  Stage stage_ = Stage::kConnecting;
  absl::Status status_;
  int64_t began_at_ = 0;
  ClientTranscript said_;
  std::unique_ptr<replication::MessageSlots> messages_;
  size_t sent_ = 0;  // messages
  std::vector<Region> regions_;
  replication::TablePlan plan_;
  std::vector<replication::Step> steps_of_persist_;
  std::unique_ptr<replication::UpdateRequester> requester_;

  std::unique_ptr<replication::MessageSlots> memory_;  // of the operations
  std::vector<Operation> slots_;
  std::vector<size_t> free_;
  std::deque<size_t> updates_;   // the front one may be posted
  std::deque<size_t> finished_;  // wait for Poll
  MemoryClientCounters counters_;
};

}  // namespace alpheus::remote

#endif  // ALPHEUS_API_REMOTE_MEMORY_CLIENT_H_
