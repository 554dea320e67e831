// SPDX-License-Identifier: Apache-2.0
// memory_server: offers regions of this process to clients, which read and
// update them over a fabric.
//
// Idea: a client proves a token, names a region, and gets a key of it. From
// then on its reads and compare-and-swaps are the adapter's work, and no
// program's. Updates are persisted by the plan of the region's platform, which
// both ends derive from MemoryOpened. This class knows nothing of what the
// bytes mean.
//
//   phase       message        reply           new phase
//   kProving    ClientProof    ClientProved    kOpening
//   kOpening    OpenMemory     MemoryOpened    kOpening; kUpdating if that is
//                                              for updates
//   kUpdating   updates        as their plan   kUpdating
//   any         anything else  ClientRefused   kEnding, then closed
//
// Invariants:
//   RMS1. A client gets a key of a region only after it has proved a token that
//         has one of the region's roles for this log. A key for reads reads and
//         no more.
//   RMS2. Nobody writes memory that is offered for reads, or protected: it is
//         registered for reads only, and no region for updates touches it. So
//         no client ever writes a ring or a superline.
//   RMS3. When Withdraw or EndAll has returned, no client reads or writes what
//         was offered: its connections are closed and its keys void (FB5).
//   RMS4. A client whose token is taken out of the list, or expires, is ended
//         within kRecheckNanos, as long as Poll is called at NextPoll.
//   RMS5. Memory is bounded: there are at most connections_max clients, and
//         unproved_max without a proof, of which the oldest makes room; those
//         that have opened nothing within proof_ns_max are ended.
// Persistence: of updates, as update_responder.h; the client knows by its plan.
// Crash states: a region may have any part of an update that its client was not
// told of. Keys, connections and offers are gone with the process.
// Thread safety: one thread, also for the Access's Replace.
// May block: Poll and OnCompletion, for the fence of a region's medium; Offer,
// for the adapter that pins pages when a client opens a region.
// References: docs/formats/client_wire.md; docs/design/remote_memory.md.
#ifndef ALPHEUS_API_REMOTE_MEMORY_SERVER_H_
#define ALPHEUS_API_REMOTE_MEMORY_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/grpc/access/access.h"
#include "api/remote/token_proof.h"
#include "api/remote/updated_memory.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "recovery/protocol/client_messages.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"
#include "replication/wire/message_slots.h"

namespace alpheus::remote {

struct MemoryServerOptions {
  Uuid cluster_id;
  std::string log;  // name, as in tokens
  NodeId node;
  uint64_t incarnation = 0;  // of this process; not 0
  size_t connections_max = 64;
  size_t unproved_max = 16;
  int64_t proof_ns_max = 5'000'000'000;
  // Gets one sentence for each client that is refused or ended.
  std::function<void(const std::string&)> warn = nullptr;
};

// A region that clients read.
struct ReadOffer {
  std::string name;  // 1 to kMemoryNameBytesMax bytes
  std::span<const std::byte> bytes;
  rpc::Roles readers;
};

// A region that clients read, compare-and-swap and update.
struct UpdateOffer {
  std::string name;
  std::unique_ptr<UpdatedMemory> memory;  // on multiples of 8
  rpc::Roles updaters;
  // Declared, as a replica's: a false claim loses updates.
  replication::Platform platform = {};
};

// Counts since the start.
struct MemoryServerCounters {
  uint64_t accepted = 0;
  uint64_t rejected = 0;  // requests to connect
  uint64_t proved = 0;
  uint64_t opened = 0;       // regions
  uint64_t refused = 0;      // clients, with a reason
  uint64_t completions = 0;  // that this program has taken
};

class MemoryServer {
 public:
  static constexpr int64_t kRecheckNanos = 500'000'000;

  // All must outlive the server. `random` must be unpredictable
  // (EntropyRandom). Requires: access.asks_for_tokens().
  MemoryServer(fabric::Fabric& fabric, const Clock& clock,
               const rpc::Access& access, RandomSource& random,
               MemoryServerOptions options);
  // As EndAll.
  ~MemoryServer();
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;

  // Offers a region until Withdraw; it must outlive that. Errors: AlreadyExists
  // (the name); InvalidArgument (name; no bytes; not on multiples of 8; a
  // region for updates that touches one for reads, or protected memory, or the
  // reverse).
  absl::Status Offer(const ReadOffer& offer);
  absl::Status Offer(UpdateOffer offer);
  // Keeps memory from ever being offered for updates. Errors: InvalidArgument
  // (some of it is).
  absl::Status Protect(std::span<const std::byte> bytes);
  // Ends all clients that have a key of it (RMS3). Errors: NotFound.
  absl::Status Withdraw(const std::string& name);
  // Ends all clients. A node does so before a region changes hands.
  void EndAll();

  // Take what the fabric's Poll brought. Return false if it belongs to no
  // client of this log. Where a node has other servers, this one comes first.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);
  // Ends clients that are too slow, or may no more.
  void Poll();
  // Returns when Poll has something to do by itself; not set: never.
  Deadline NextPoll() const;

  const MemoryServerCounters& counters() const { return counters_; }
  size_t connection_count() const { return clients_.size(); }

 private:
  enum class Phase { kProving, kOpening, kUpdating, kEnding };
  struct Offered {
    // For reads, or for updates.
    std::span<const std::byte> read;
    std::unique_ptr<UpdatedMemory> memory;
    rpc::Roles roles;
    replication::Platform platform;

    std::span<const std::byte> bytes() const {
      return memory == nullptr ? read : memory->bytes();
    }
  };
  struct Opened {
    std::string name;
    fabric::RegionKey key;
    std::unique_ptr<rpc::Permit> permit;
  };
  struct Client {
    fabric::ConnectionId id;
    std::string peer;
    ClientTranscript said;
    Phase phase = Phase::kProving;
    int64_t accepted_at = 0;
    rpc::Shown shown;  // digest of its token, once proved
    std::unique_ptr<replication::MessageSlots> slots;  // request and reply
    bool replying = false;
    std::optional<uint64_t> request;  // length of one that waits for that
    std::vector<Opened> opened;
    std::unique_ptr<UpdatesOfClient> updates;
  };

  absl::Status CheckName(const std::string& name) const;
  absl::Status Accept(const fabric::ConnectionEvent& event,
                      const recovery::ClientHello& hello);
  bool MakeRoom();
  void TakeControl(Client& client, const fabric::Completion& completion);
  absl::StatusOr<recovery::ClientMessage> Reply(
      Client& client, const recovery::ClientMessage& message);
  absl::StatusOr<recovery::ClientMessage> OnProof(
      Client& client, const recovery::ClientProof& proof);
  absl::StatusOr<recovery::ClientMessage> OnOpen(
      Client& client, const recovery::OpenMemory& open);
  absl::StatusOr<recovery::ClientMessage> BeginUpdates(
      Client& client, Offered& offered, recovery::MemoryOpened reply);
  absl::Status PostRequest(const Client& client);
  absl::Status Send(Client& client, const recovery::ClientMessage& message);
  void Refuse(Client& client, const absl::Status& why);
  void End(fabric::ConnectionId id, const absl::Status& why);
  void Warn(const std::string& peer, const absl::Status& why,
            std::string_view what) const;
  // Returns true if the client may take proof_ns_max only.
  static bool IsAwaited(const Client& client);
  static absl::Status Recheck(const Client& client);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  const rpc::Access& access_;
  RandomSource& random_;
  const MemoryServerOptions options_;
  const Uuid log_id_;
  std::map<std::string, Offered> offers_;
  std::vector<std::span<const std::byte>> protected_;
  std::map<fabric::ConnectionId, Client> clients_;
  int64_t recheck_at_ = 0;
  MemoryServerCounters counters_;
};

// Rejects a request to connect that no server of an adapter has taken, with a
// reason that its peer understands. Other events are left alone.
void RejectUnserved(fabric::Fabric& fabric,
                    const fabric::ConnectionEvent& event);

}  // namespace alpheus::remote

#endif  // ALPHEUS_API_REMOTE_MEMORY_SERVER_H_
