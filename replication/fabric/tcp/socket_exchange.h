// SPDX-License-Identifier: Apache-2.0
// socket_exchange: brings the sockets of one address to several adapters of a
// process, each of which has a thread of its own.
//
// Idea: one of the adapters listens. A peer says first for which group its
// connection is, and a group has one adapter. So the adapter that accepts reads
// until it knows the group. If that is another adapter's, the socket goes
// there, with all that was read of it:
//
//   peer -- "group 7, ..." --> adapter 0        7 mod 3 = 1
//                                 | socket, bytes
//                                 v
//                              inbox 1  - - wake - ->  adapter 1
//
// Invariants:
//   XCH1. A group has the same adapter at all times: AdapterOf.
//   XCH2. A socket is at one adapter, or in one inbox, or it is closed. What
//         the peer has said goes with it, whole and in order.
//   XCH3. Memory is bounded: kInboxMax sockets wait for an adapter at most. The
//         one that has waited longest makes room: its adapter stands still.
//   XCH4. Sockets for an adapter that is gone are closed.
// Thread safety: all members concurrently. Lock order: an adapter's lock, then
// that of an inbox, under which only Poller::Wake is called.
// References: docs/design/fabric.md#adapters-that-share-an-address.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_EXCHANGE_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_EXCHANGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "log/base/mutex.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/stream.h"

namespace alpheus::fabric::tcp {

// Groups of connections are numbered from 0 to kGroups - 1. On the wire.
inline constexpr uint32_t kGroups = 256;

// Returns which of so many adapters has the group (XCH1). Both ends compute it.
// Requires: group < kGroups; 0 < adapters <= kGroups.
constexpr uint32_t AdapterOf(uint32_t group, uint32_t adapters) {
  return group % adapters;
}

// A socket on its way. Its stream belongs to no poller.
struct TravellingSocket {
  std::unique_ptr<Stream> stream;
  std::string peer;  // its address
  uint32_t group = 0;
  bool is_trunk = false;
  std::vector<std::byte> bytes;  // that the peer has said so far
};

class SocketExchange {
 public:
  static constexpr size_t kInboxMax = 256;

  // Requires: 0 < adapters <= kGroups.
  explicit SocketExchange(uint32_t adapters) : inboxes_(adapters) {}

  uint32_t adapters() const { return static_cast<uint32_t>(inboxes_.size()); }

  // Says that the adapter of this number takes sockets, and how it is woken;
  // that it takes none any more. `poller` must live in between.
  void Join(uint32_t adapter, Poller& poller);
  void Leave(uint32_t adapter);

  // Brings a socket to the adapter's inbox, and wakes the adapter.
  void Bring(uint32_t adapter, TravellingSocket socket);
  // Returns whether there may be sockets for the adapter. Costs one load.
  bool HasFor(uint32_t adapter) const {
    // Order: a hint; the lock orders everything else, and Bring wakes.
    return inboxes_[adapter].count.load(std::memory_order_relaxed) > 0;
  }
  // Returns them, in the order in which they came.
  std::deque<TravellingSocket> TakeFor(uint32_t adapter);

 private:
  struct Inbox {
    Mutex mutex;
    Poller* poller ABSL_GUARDED_BY(mutex) = nullptr;  // null: nobody is there
    std::deque<TravellingSocket> sockets ABSL_GUARDED_BY(mutex);
    std::atomic<size_t> count{0};  // of them
  };

  std::vector<Inbox> inboxes_;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_EXCHANGE_H_
