// SPDX-License-Identifier: Apache-2.0
// fabric: how one host reads and writes the memory of another.
//
// Idea: a narrow interface in the shape of RDMA verbs over reliable connections
// (RC queue pairs), so that rdma-core fits behind it with next to no code, and
// a software adapter over TCP and a deterministic simulation can keep the same
// promises. One Fabric is one adapter: memory is registered with it, others are
// connected to, work is posted on a connection, and Poll brings completions
// and what happens to connections. Memory that is registered for remote access
// is read and written by peers without the host's program taking part. The
// fabric knows no records and no epochs.
//
//   requester                                  responder
//   PostWriteImm(bytes, address, immediate) -> bytes land in its region, then
//   completes once the bytes are in the         kReceiveImmediate completes one
//   responder's adapter: not persistent!        PostReceive; no bytes in it
//
// Invariants, which the conformance suite checks on every fabric:
//   FB1. Order: operations of one connection take effect at the responder in
//        the order in which they were posted; a read, an atomic and a flush see
//        all writes posted before them. Between connections there is no order.
//        The bytes of one write land in any order, 8-byte words whole.
//   FB2. A receive that announces a write (immediate) completes only when that
//        write and all before it on the connection are visible.
//   FB3. Each posted operation completes exactly once, in the order of posting
//        among sends and among receives, also when it fails; after the first
//        failure all later ones of the connection complete with kFlushed.
//        A failed operation may have taken effect in part, or whole.
//   FB4. Nothing is read or written outside the registered bytes, without the
//        access that was granted, or with a key that was never or is no longer
//        given out: the operation fails with kRemoteAccess, and its connection
//        is broken at both ends. An operation of no bytes touches nothing; its
//        key and offset are not looked at.
//   FB5. Fences: when Close(connection) has returned, no operation of that
//        connection changes memory of this host any more, whatever was on its
//        way; when Deregister(key) has returned, no operation with that key
//        does (protocol P-H6, P-R2). Nothing else is a fence.
//   FB6. A write with immediate, or a send, that finds no receive posted is
//        retried a bounded time, then fails with kReceiverNotReady; its bytes
//        may have landed all the same (P-R1).
//   FB7. Keys and connection ids are never used twice in the life of an
//        adapter; keys can't be guessed from others.
//   FB8. The completion of a write, a write with immediate or a send says that
//        the responder's adapter has the bytes. They become visible without
//        more being done, before Close or Deregister returns there, unless that
//        host loses its power. When they are visible is said by what comes
//        behind them: the completion of a read, an atomic or a flush (FB1), at
//        the requester; of a receive (FB2), at the responder. The adapter in
//        software completes when they are visible; nobody counts on that.
//   FB9. There is room for the completions of all that may be posted. If some
//        are lost all the same (a completion queue overruns, a device fails),
//        all connections of the adapter are broken, and what was lost completes
//        with kFlushed: it may have taken effect, a receive too (P-R3).
// Persistence: a completion says "received" or "visible", never "persistent";
// who wants more runs a plan of replication/persist.
// Thread safety: all members concurrently. Callbacks do not exist.
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

namespace alpheus {

// Right to use a registered region from elsewhere, as the handshake hands it
// on. 0 is never given out.
using RegionKey = StrongId<struct RegionKeyTag>;

// One connection of this adapter. 0 is never given out.
using ConnectionId = StrongId<struct ConnectionIdTag>;

// Chosen by whoever posts; comes back in the completion.
using WorkId = StrongId<struct WorkIdTag>;

// What peers may do with a region.
enum class RemoteAccess : uint32_t {
  kNone = 0,  // only as a source or target of own operations
  kRead = 1,
  kWrite = 2,
  kReadWrite = 3,
  kAll = 7,  // and atomics
};

// A place in a region of the peer: `offset` bytes behind its start.
struct RemoteAddress {
  RegionKey key;
  uint64_t offset = 0;
};

// Bytes of this host that an operation reads or fills; they lie in the region
// registered under `key` and stay untouched until the operation completes.
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

enum class CompletionStatus {
  kOk,
  // The connection was broken or closed before its turn, or what became of it
  // was lost (FB9).
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
  // Of a receive: bytes that the peer sent, or wrote with the immediate.
  uint64_t bytes = 0;
  uint32_t immediate = 0;  // of kReceiveImmediate
};

// What happened to a connection or to the listener.
struct ConnectionEvent {
  enum class Kind {
    kRequested,     // a peer wants to connect; Accept or Reject `connection`
    kEstablished,   // both ways work
    kRejected,      // by the peer's program, with what it had to say
    kUnreachable,   // nobody listens there, or the deadline passed
    kDisconnected,  // broken or closed by the peer
  };
  // After the last three Close is still to be called. Each comes at most once;
  // a peer that falls silent is noticed, at the latest, by what is posted.

  Kind kind = Kind::kRequested;
  ConnectionId connection;
  // What the peer's Connect, Accept or Reject said; at most
  // Limits::private_bytes_max.
  std::string private_data;
  std::string peer;  // address, for messages
};

// Why an adapter ended a peer from elsewhere by itself.
enum class StrangerEnd {
  kSaidNothing,    // in time, or until others came
  kNotUnderstood,  // what it said is no message
};

class Fabric {
 public:
  struct Limits {
    uint32_t sends_max = 0;     // posted and not completed, per connection
    uint32_t receives_max = 0;  // the same
    uint64_t message_bytes_max = 0;
    uint32_t private_bytes_max = 0;
    int64_t retry_ns = 0;  // until a silent peer counts as gone
    // What else the adapter can do: PostFlush without a read, of persistent
    // memory at least; PostWriteAtomic.
    bool native_flush = false;
    bool atomic_write = false;
  };

  virtual ~Fabric() = default;

  virtual Limits limits() const = 0;

  // The region must outlive its registration. Errors: InvalidArgument (empty;
  // kAll and not on a multiple of 8); Unavailable (the adapter refuses this
  // memory).
  virtual absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                             RemoteAccess access) = 0;
  // A fence (FB5). Own operations whose bytes lie there and that are not done
  // complete with kLocalAccess or, if their turn comes not, kFlushed.
  // Errors: NotFound.
  virtual absl::Status Deregister(RegionKey key) = 0;

  // Peers' requests then come as kRequested. Errors: AlreadyExists (in use),
  // InvalidArgument (not an address), Unavailable.
  virtual absl::StatusOr<std::string> Listen(std::string_view address) = 0;

  // Starts to connect; kEstablished, kRejected or kUnreachable follows, without
  // a deadline after retry_ns if the peer's adapter is silent.
  // Work may be posted from kEstablished on, receives at once.
  // Errors: InvalidArgument (address, private data too long), Unavailable (the
  // adapter lacks what it needs of its host).
  virtual absl::StatusOr<ConnectionId> Connect(std::string_view address,
                                               std::string_view private_data,
                                               Deadline deadline) = 0;
  // Answers kRequested; kEstablished follows on both sides after Accept. Post
  // receives before it: the peer may send at once. Errors: NotFound (no such
  // request, or the peer has gone: then Close or Reject), InvalidArgument
  // (private data too long: the request stays).
  virtual absl::Status Accept(ConnectionId connection,
                              std::string_view private_data) = 0;
  // Ends the request whatever it returns, also when the peer has gone: no Close
  // is to follow. Close answers as a Reject does that says nothing. Errors:
  // NotFound (no such request), InvalidArgument (private data too long: the
  // peer was rejected without a word).
  virtual absl::Status Reject(ConnectionId connection,
                              std::string_view private_data) = 0;

  // A fence (FB5). What was posted and not completed completes with kFlushed;
  // no event of it comes any more. Errors: NotFound.
  virtual absl::Status Close(ConnectionId connection) = 0;

  // Posting. The operation is handed to the adapter at once or, at the latest,
  // by the next Poll, so that what is posted in a row leaves in one go.
  // Errors, with nothing posted: NotFound (no such connection),
  // FailedPrecondition (not established; broken), ResourceExhausted (sends_max
  // or receives_max are posted), InvalidArgument (bytes outside `key`'s region;
  // more than message_bytes_max; an atomic whose offset is no multiple of 8 or
  // whose `into` is not 8 bytes). An empty LocalBytes needs no key.
  virtual absl::Status PostWrite(ConnectionId connection, WorkId work,
                                 LocalBytes from, RemoteAddress to) = 0;
  virtual absl::Status PostWriteImmediate(ConnectionId connection, WorkId work,
                                          LocalBytes from, RemoteAddress to,
                                          uint32_t immediate) = 0;
  virtual absl::Status PostRead(ConnectionId connection, WorkId work,
                                LocalBytes into, RemoteAddress from) = 0;
  // The 8 bytes of `into` get the value from before. Atomic among operations
  // of fabrics on that word, not with the responder's processor.
  virtual absl::Status PostCompareSwap(ConnectionId connection, WorkId work,
                                       LocalBytes into, RemoteAddress word,
                                       uint64_t expected, uint64_t desired) = 0;
  virtual absl::Status PostFetchAdd(ConnectionId connection, WorkId work,
                                    LocalBytes into, RemoteAddress word,
                                    uint64_t add) = 0;
  // Completes when all writes posted before it are visible, and with DDIO off
  // in the responder's memory controller, also those outside the range; by
  // native FLUSH or, where there is none or it would say less, by a read of the
  // last byte of the range. Needs kRead, and all of the range in bounds.
  virtual absl::Status PostFlush(ConnectionId connection, WorkId work,
                                 RemoteAddress range, uint64_t bytes) = 0;
  // A write of one whole word, on a multiple of 8, that is carried out behind
  // all that was posted before, flushes too; it completes as a kWrite. Errors:
  // also Unimplemented (Limits::atomic_write is false), InvalidArgument (not
  // such a word).
  virtual absl::Status PostWriteAtomic(ConnectionId connection, WorkId work,
                                       LocalBytes from, RemoteAddress to);
  virtual absl::Status PostSend(ConnectionId connection, WorkId work,
                                LocalBytes from) = 0;
  // An empty `into` takes immediates only.
  virtual absl::Status PostReceive(ConnectionId connection, WorkId work,
                                   LocalBytes into) = 0;

  // What was posted leaves now, not with the next Poll: for who has more to do
  // before that. No more than a hint: an adapter in software, whose calls are
  // dear, may wait for more.
  virtual void HandOver() {}

  // Makes progress, for peers' operations on this host's memory too, and takes
  // up to completions.size() completions and all connection events. Returns
  // how many completions there were. Never blocks.
  virtual size_t Poll(std::span<Completion> completions,
                      std::vector<ConnectionEvent>* events) = 0;

  // Only makes progress: for a thread that stands in while nobody polls.
  // Returns whether there was any.
  virtual bool Progress() = 0;

  // Returns when Poll may have something, or at the deadline, or when Wake is
  // called; no time of a core is used until then. Not for simulated fabrics.
  virtual void WaitForActivity(Deadline deadline) = 0;
  virtual void Wake() = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_FABRIC_FABRIC_H_
