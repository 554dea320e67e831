// SPDX-License-Identifier: Apache-2.0
// fabric: how one host reads and writes the memory of another.
//
// Idea: a narrow interface in the shape of RDMA verbs over reliable connections
// (RC queue pairs), so that RDMA adapters (verbs/), a software adapter over TCP
// (tcp/) and a deterministic simulation (tools/model/fabric) can keep the same
// promises. One Fabric is one adapter: memory is registered with it, peers are
// connected to, work is posted on a connection, and Poll brings completions and
// connection events. A peer reads and writes memory that is registered for
// remote access without help from this host's program. The fabric knows no
// records and no epochs.
//
//   requester                                responder
//   PostWriteImmediate(bytes, address,   ->  bytes land in its region, then
//     immediate) completes once the bytes    kReceiveImmediate completes one
//     are in the responder's adapter: not    PostReceive; no bytes in it
//     persistent!
//
// Invariants, which the conformance suite checks on every fabric:
//   FB1. Order: operations of one connection take effect at the responder in
//        the order in which they were posted; a read, an atomic and a flush see
//        all writes posted before them. Between connections there is no order.
//        The bytes of one write land in any order, 8-byte words whole.
//   FB2. A receive that announces a write (immediate) completes only when that
//        write and all before it on the connection are visible.
//   FB3. Each posted operation completes exactly once, also when it fails.
//        Operations other than receives complete in the order of posting, and
//        so do receives. After the first failure all later ones of the
//        connection complete with kFlushed. A failed operation may have taken
//        effect in part, or whole.
//   FB4. Nothing is read or written outside the registered bytes, without the
//        granted access, or with a key that was never issued or is void.
//        Such an operation fails with kRemoteAccess, and its connection is
//        broken at both ends. An operation of no bytes touches nothing; its key
//        and offset are not checked.
//   FB5. Fences: when Close(connection) has returned, no operation of that
//        connection changes memory of this host any more, whatever was in
//        flight. When Deregister(key) has returned, no operation with that key
//        does (protocol P-H6, P-R2). Nothing else is a fence.
//   FB6. A write with immediate, or a send, that finds no receive posted is
//        retried a bounded time, then fails with kReceiverNotReady; its bytes
//        may have landed all the same (P-R1).
//   FB7. Keys and connection ids are never used twice in the life of an
//        adapter; keys can't be guessed from others.
//   FB8. The completion of a write, a write with immediate or a send says that
//        the responder's adapter has the bytes. They become visible by
//        themselves, before Close or Deregister returns there, unless that host
//        loses its power. A later event says when they are visible: the
//        completion of a read, an atomic or a flush (FB1), at the requester; of
//        a receive (FB2), at the responder. The adapter in software completes
//        when they are visible; no caller may count on that.
//   FB9. There is room for the completions of all that may be posted. If some
//        are lost all the same (a completion queue overruns, a device fails),
//        all connections of the adapter are broken. The operations whose
//        completions were lost complete with kFlushed: they may have taken
//        effect, a receive too (P-R3).
// Persistence: a completion says "received" or "visible", never "persistent". A
// plan of replication/persist gives more.
// Thread safety: all members concurrently. Callbacks do not exist.
// May block: no call but WaitForActivity waits for a peer. Poll, RunTurn,
// Post, PostReceive, FlushSends and Wake may wait for the adapter's lock, which
// another thread holds for one turn; in an adapter in software a turn also
// meets the page faults of registered memory. All other calls may take system
// calls: Register pins pages, Close and Deregister may wait for the adapter.
// References: InfiniBand Architecture 1.2.1 §9, §10.7; ibv_post_send(3);
// rdma_cm(7); ibv_poll_cq(3); protocol P-B0.3 to P-B0.6, P-B6.
#ifndef ALPHEUS_REPLICATION_FABRIC_FABRIC_H_
#define ALPHEUS_REPLICATION_FABRIC_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"

namespace alpheus::fabric {

// The right of a peer to use a registered region, as the handshake passes it
// on. 0 is never issued.
using RegionKey = StrongId<struct RegionKeyTag>;

// One connection of this adapter. 0 is never issued.
using ConnectionId = StrongId<struct ConnectionIdTag>;

// Chosen by the caller that posts; comes back in the completion.
using WorkId = StrongId<struct WorkIdTag>;

// Peers' access to a region.
enum class RemoteAccess : uint32_t {
  kNone = 0,  // only for operations of this host
  kRead = 1,
  kWrite = 2,
  kReadWrite = 3,
  kAll = 7,  // and atomics
};

// A place in a region of the peer: `offset` bytes from its start.
struct RemoteAddress {
  RegionKey key;
  uint64_t offset = 0;
};

// Bytes of this host that an operation reads or fills. They lie in the region
// registered under `key`, and must not change until the operation completes.
struct LocalBytes {
  RegionKey key;
  std::span<std::byte> bytes;
};

enum class Operation {
  kWrite,
  kWriteImmediate,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kSend,
  kReceive,           // the peer's send filled the buffer
  kReceiveImmediate,  // the peer's write with immediate used the receive up
};

// A posted operation other than a receive.
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

enum class CompletionStatus {
  kOk,
  // The connection was broken or closed before its turn, or its outcome was
  // lost (FB9).
  kFlushed,
  kRemoteAccess,      // key, bounds or access (FB4)
  kReceiverNotReady,  // the peer had no receive posted (FB6)
  kReceiveTooSmall,   // the receive was shorter than the send: at both ends
  kPeerGone,          // no answer within Limits::retry_ns; outcome unknown
  kLocalAccess,       // own bytes were deregistered before their turn
};

const char* OperationName(Operation operation);
const char* CompletionStatusName(CompletionStatus status);

struct Completion {
  ConnectionId connection;
  WorkId work;
  Operation operation = Operation::kWrite;
  CompletionStatus status = CompletionStatus::kOk;
  // For a receive: bytes that the peer sent, or wrote with the immediate.
  uint64_t bytes = 0;
  uint32_t immediate = 0;  // set for kReceiveImmediate
};

// An event of a connection or of the listener.
struct ConnectionEvent {
  enum class Kind {
    kRequested,     // a peer wants to connect; Accept or Reject `connection`
    kEstablished,   // both ways work
    kRejected,      // by the peer's program, with its private data
    kUnreachable,   // no listener there, or the deadline passed
    kDisconnected,  // broken or closed by the peer
  };
  // Each kind comes at most once for a connection. After kRejected,
  // kUnreachable and kDisconnected the caller must still call Close. If a peer
  // falls silent no event may come: then the next posted operation fails with
  // kPeerGone.

  Kind kind = Kind::kRequested;
  ConnectionId connection;
  // Private data of the peer's Connect, Accept or Reject; at most
  // Limits::private_bytes_max.
  std::string private_data;
  std::string peer;  // address, for messages
  // Name that the peer has proved to the adapter, a URI; empty: the adapter
  // asks for no such proof.
  std::string peer_name = {};
  // With kUnreachable: why there is no connection to a peer that was reached,
  // without a full stop. Empty: it was not reached.
  std::string why = {};
};

// Why an adapter ended an unauthenticated peer by itself.
enum class UnauthenticatedEnd {
  kSaidNothing,    // silent for too long, or when others needed the room
  kNotUnderstood,  // its bytes are no message
  kNotTrusted,     // it has not proved a name that this adapter accepts
};

class Fabric {
 public:
  struct Limits {
    uint32_t sends_max = 0;     // posted and not completed, per connection
    uint32_t receives_max = 0;  // posted and not completed, per connection
    uint64_t message_bytes_max = 0;
    uint32_t private_bytes_max = 0;
    int64_t retry_ns = 0;  // until a silent peer counts as gone
    // PostFlush uses the adapter's FLUSH, at least for persistent memory; else
    // it is a read.
    bool native_flush = false;
    bool atomic_write = false;  // PostWriteAtomic is there
  };

  virtual ~Fabric() = default;

  virtual Limits limits() const = 0;

  // Registers a region, which must outlive its registration. Errors:
  // InvalidArgument (empty; kAll and not on a multiple of 8); Unavailable (the
  // adapter refuses this memory).
  virtual absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                             RemoteAccess access) = 0;
  // Ends a registration. A fence (FB5). Unfinished operations of this host on
  // these bytes complete with kLocalAccess or, if their turn does not come,
  // kFlushed. Errors: NotFound.
  virtual absl::Status Deregister(RegionKey key) = 0;

  // Listens; returns the address. Peers' requests then come as kRequested.
  // Errors: AlreadyExists (in use), InvalidArgument (not an address),
  // Unavailable.
  virtual absl::StatusOr<std::string> Listen(std::string_view address) = 0;

  // Starts to connect; kEstablished, kRejected or kUnreachable follows. Without
  // a deadline it is kUnreachable after retry_ns if the peer's adapter is
  // silent. Work may be posted from kEstablished on, receives at once. Errors:
  // InvalidArgument (address, private data too long), Unavailable (the adapter
  // lacks what it needs of its host).
  virtual absl::StatusOr<ConnectionId> Connect(std::string_view address,
                                               std::string_view private_data,
                                               Deadline deadline) = 0;
  // Accepts a kRequested; kEstablished follows on both sides. Post receives
  // before: the peer may send at once. Errors: NotFound (no such request, or
  // the peer is gone: then Close or Reject), InvalidArgument (private data too
  // long: the request stays).
  virtual absl::Status Accept(ConnectionId connection,
                              std::string_view private_data) = 0;
  // Ends a request, whatever it returns, also when the peer is gone: no Close
  // is to follow. Close ends a request like a Reject without private data.
  // Errors: NotFound (no such request), InvalidArgument (private data too long:
  // the peer was rejected without any).
  virtual absl::Status Reject(ConnectionId connection,
                              std::string_view private_data) = 0;

  // Closes a connection. A fence (FB5). Unfinished work completes with
  // kFlushed; no event of the connection comes any more. Errors: NotFound.
  virtual absl::Status Close(ConnectionId connection) = 0;

  // Posts an operation other than a receive; the named posts below make such a
  // request. The operation is handed to the adapter at once or, at the latest,
  // by the next Poll, so that operations posted in a row leave together. An
  // atomic write needs Limits::atomic_write. Errors, with nothing posted:
  // NotFound (no such connection), FailedPrecondition (not established;
  // broken), ResourceExhausted (sends_max are posted), InvalidArgument (bytes
  // outside `key`'s region; more than message_bytes_max; an atomic whose offset
  // is no multiple of 8 or whose own bytes are not 8). An empty LocalBytes
  // needs no key.
  virtual absl::Status Post(ConnectionId connection,
                            const WorkRequest& request) = 0;

  absl::Status PostWrite(ConnectionId connection, WorkId work, LocalBytes from,
                         RemoteAddress to) {
    return Post(connection, {.operation = Operation::kWrite,
                             .work = work,
                             .local = from,
                             .remote = to});
  }
  absl::Status PostWriteImmediate(ConnectionId connection, WorkId work,
                                  LocalBytes from, RemoteAddress to,
                                  uint32_t immediate) {
    return Post(connection, {.operation = Operation::kWriteImmediate,
                             .work = work,
                             .local = from,
                             .remote = to,
                             .immediate = immediate});
  }
  absl::Status PostRead(ConnectionId connection, WorkId work, LocalBytes into,
                        RemoteAddress from) {
    return Post(connection, {.operation = Operation::kRead,
                             .work = work,
                             .local = into,
                             .remote = from});
  }
  // Writes the old value to the 8 bytes of `into`. Atomic among operations of
  // fabrics on that word, but not with the responder's processor.
  absl::Status PostCompareSwap(ConnectionId connection, WorkId work,
                               LocalBytes into, RemoteAddress word,
                               uint64_t expected, uint64_t desired) {
    return Post(connection, {.operation = Operation::kCompareSwap,
                             .work = work,
                             .local = into,
                             .remote = word,
                             .operands = {expected, desired}});
  }
  absl::Status PostFetchAdd(ConnectionId connection, WorkId work,
                            LocalBytes into, RemoteAddress word, uint64_t add) {
    return Post(connection, {.operation = Operation::kFetchAdd,
                             .work = work,
                             .local = into,
                             .remote = word,
                             .operands = {add, 0}});
  }
  // Completes when all writes posted before it are visible, also those outside
  // the range; with DDIO off, when they are in the responder's memory
  // controller. Uses native FLUSH or, where there is none or it would say less,
  // a read of the range's last byte. Needs kRead, and all of the range in
  // bounds.
  absl::Status PostFlush(ConnectionId connection, WorkId work,
                         RemoteAddress range, uint64_t bytes) {
    return Post(connection, {.operation = Operation::kFlush,
                             .work = work,
                             .remote = range,
                             .range_bytes = bytes});
  }
  // Writes one whole word, on a multiple of 8, after all that was posted before
  // it, flushes included. Completes as a kWrite. Errors: also Unimplemented
  // (Limits::atomic_write is false).
  absl::Status PostWriteAtomic(ConnectionId connection, WorkId work,
                               LocalBytes from, RemoteAddress to);
  absl::Status PostSend(ConnectionId connection, WorkId work, LocalBytes from) {
    return Post(connection,
                {.operation = Operation::kSend, .work = work, .local = from});
  }

  // Posts a receive. An empty `into` takes immediates only. Errors: as Post,
  // but it may be posted before the connection is established;
  // ResourceExhausted (receives_max are posted).
  virtual absl::Status PostReceive(ConnectionId connection, WorkId work,
                                   LocalBytes into) = 0;

  // Sends posted work now, for a caller that has more to do before the next
  // Poll. Only a hint: an adapter in software, whose system calls are dear, may
  // wait for more.
  virtual void FlushSends() {}
  // Returns true if what is posted now had better leave with what others are
  // about to post. A caller that is going to wait then leaves it to its wait.
  virtual bool sends_for_waiters() const { return false; }

  // Runs a turn, for peers' operations on this host's memory too, and takes up
  // to completions.size() completions and all connection events. Returns the
  // number of completions. Waits for no arrival.
  virtual size_t Poll(std::span<Completion> completions,
                      std::vector<ConnectionEvent>* events) = 0;

  // Runs a turn only: for a thread that stands in while no other polls. Returns
  // true if anything was done.
  virtual bool RunTurn() = 0;

  // Waits until Poll may have something, or the deadline, or Wake; uses no time
  // of a core. Not for simulated fabrics.
  virtual void WaitForActivity(Deadline deadline) = 0;
  virtual void Wake() = 0;
};

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_FABRIC_H_
