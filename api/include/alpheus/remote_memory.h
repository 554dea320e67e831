// SPDX-License-Identifier: Apache-2.0
// remote_memory: memory of one process that programs on other machines read,
// compare and swap, and update, without its help where the adapter can.
//
// Idea: a process offers regions under names (MemoryOffers). A client proves a
// token, which names its roles and logs as the service's tokens do, and opens
// regions (RemoteMemory). It never has the cluster's key. Reads and swaps are
// one round trip and no work of the other program; an update is persisted by
// the plan of the region's platform, and is persistent when it has ended with
// OK.
//
//   auto offers = MemoryOffers::Serve({.cluster_id = id, .log = "main",
//       .address = "10.0.0.1:7500", .tokens_file = "tokens.toml"});
//   (*offers)->OfferToUpdate("inbox", region, {"append"}, "");
//
//   auto memory = RemoteMemory::Open({.cluster_id = id, .log = "main",
//       .address = "10.0.0.1:7500", .token = token, .updated = "inbox"});
//   (*memory)->Update(0, bytes, [](const absl::Status& end) { ... });
//   (*memory)->Wait(Deadline::In(1s));
//
// Guarantees:
//   RMM1. A token never goes over the link, nor anything that shows it.
//   Contents
//         of memory do, and are not encrypted: use a network that you trust.
//   RMM2. Memory that is offered for reads is written by no client.
//   RMM3. When Withdraw has returned, no client touches the region any more.
//   RMM4. An update that has ended with OK outlives a power cut of the other
//         machine, if its platform was declared truly. Words of 8 bytes are
//         whole; a longer update may be there in part before it has ended.
//   RMM5. A call that returns an error has posted nothing. An error that comes
//         by a callback leaves the outcome of an update or a swap unknown,
//         unless it says that nothing was posted.
//
// Thread safety: RemoteMemory: one thread. MemoryOffers: all members
// concurrently; it has a thread of its own.
// References: docs/design/remote_memory.md, docs/formats/client_wire.md.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_REMOTE_MEMORY_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_REMOTE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/persistent_region.h"
#include "log/base/deadline.h"

namespace alpheus {

struct RemoteMemoryOptions {
  std::string cluster_id;    // 32 hexadecimal digits, as in the cluster file
  std::string log = "main";  // as in the token
  std::string address;       // of MemoryOffers
  std::string token;
  // Names of regions to read; they have the numbers 0, 1 and so on.
  std::vector<std::string> read = {};
  // Name of the region to update, which has the next number; empty: none.
  std::string updated = {};
  uint32_t in_flight_max = 16;          // operations
  uint64_t operation_bytes_max = 4096;  // of one operation
  uint32_t open_timeout_ms = 5'000;
  uint32_t operation_timeout_ms = 10'000;
};

class RemoteMemory {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using Swapped = std::function<void(const absl::StatusOr<uint64_t>& found)>;
  // Costs since the opening.
  struct Counts {
    uint64_t messages = 0;  // posted here
    uint64_t acks = 0;      // sent by the other program
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t round_trips = 0;
  };

  // Connects and opens the regions. Blocks. Errors: InvalidArgument (options);
  // Unavailable (not reached, or no answer); Unauthenticated (the token is
  // unknown or has expired; or the other process does not know it);
  // PermissionDenied (its roles, or its logs); NotFound (no such region; no
  // such log or cluster there); ResourceExhausted (too many clients);
  // Unimplemented (another version).
  static absl::StatusOr<std::unique_ptr<RemoteMemory>> Open(
      const RemoteMemoryOptions& options);
  // Closes; callbacks that have not been called are dropped.
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  uint64_t region_bytes(size_t region) const;

  // Begin operations, which end by their callbacks, in Poll or Wait. `offset`
  // counts from the region's start. Errors, with nothing posted:
  // InvalidArgument (bytes outside the region, none, or more than
  // operation_bytes_max; a word not on a multiple of 8); FailedPrecondition
  // (the connection is over; no region to update); ResourceExhausted
  // (in_flight_max are in flight). Errors of callbacks: Unavailable (it broke,
  // or no answer); PermissionDenied (the region was withdrawn).
  //
  // `into` must live until the callback. Only words of 8 bytes are whole.
  absl::Status Read(size_t region, uint64_t offset, std::span<std::byte> into,
                    Done done);
  // Puts `desired` in place of `expected` in a word of the region to update.
  // Atomic among clients, not with the other program's processor. Durable only
  // after Persist.
  absl::Status CompareAndSwap(uint64_t offset, uint64_t expected,
                              uint64_t desired, Swapped done);
  // Writes bytes, which are copied, to the region to update. Durable when it
  // has ended with OK (RMM4). Updates take effect one after the other.
  absl::Status Update(uint64_t offset, std::span<const std::byte> bytes,
                      Done done);
  // Makes durable what swaps that have ended have put there.
  absl::Status Persist(uint64_t offset, uint64_t bytes, Done done);

  // Takes what has arrived, and calls back. Does not block. Returns the number
  // of operations in flight.
  size_t Poll();
  // Polls until nothing is in flight. Errors: DeadlineExceeded (operations go
  // on); those of the connection, once it is over.
  absl::Status Wait(Deadline deadline);

  Counts counts() const;

 private:
  struct Impl;
  explicit RemoteMemory(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

struct MemoryOffersOptions {
  std::string cluster_id;    // 32 hexadecimal digits, as in the cluster file
  std::string log = "main";  // for which tokens count
  std::string address;       // to listen on; port 0: any
  std::string tokens_file;   // as alpheusd's
  uint64_t node = 0;         // shown to clients
  uint32_t clients_max = 64;
  // Gets one sentence for each client that is refused or ended; called by the
  // thread of this object.
  std::function<void(const std::string&)> warn = nullptr;
};

class MemoryOffers {
 public:
  // Listens, and serves clients over TCP. Errors: InvalidArgument (options; the
  // file); NotFound, PermissionDenied (the file); AlreadyExists (the address is
  // in use); Unavailable; ResourceExhausted (no thread).
  static absl::StatusOr<std::unique_ptr<MemoryOffers>> Serve(
      const MemoryOffersOptions& options);
  // Ends all clients.
  ~MemoryOffers();
  MemoryOffers(const MemoryOffers&) = delete;
  MemoryOffers& operator=(const MemoryOffers&) = delete;

  // The address with its port.
  const std::string& address() const;

  // Offers memory, which must outlive the offer, to tokens with one of these
  // roles (append, read, admin). Errors: AlreadyExists (the name);
  // InvalidArgument (name, role, platform, no bytes, not on multiples of 8, or
  // memory that is offered for both).
  absl::Status OfferToRead(const std::string& name,
                           std::span<const std::byte> bytes,
                           const std::vector<std::string>& roles);
  // `platform`: words as of alpheusd's option of that name; "" is the weakest,
  // and always safe.
  absl::Status OfferToUpdate(const std::string& name, PersistentRegion& region,
                             const std::vector<std::string>& roles,
                             const std::string& platform);
  // Keeps memory from ever being offered for updates, such as a log's. Errors:
  // InvalidArgument (some of it is).
  absl::Status Protect(std::span<const std::byte> bytes);
  // Ends all clients that have it open. Errors: NotFound.
  absl::Status Withdraw(const std::string& name);
  // Reads the file of tokens again. Clients whose tokens are gone are ended
  // within a second. Errors: as of the file; the tokens of before stay.
  absl::Status ReloadTokens();

 private:
  struct Impl;
  explicit MemoryOffers(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_REMOTE_MEMORY_H_
