// SPDX-License-Identifier: Apache-2.0
// messages: what a primary and a replica say to each other until records flow.
//
// Idea: one connection serves one primary process and one replica of one log.
// Hello and Welcome travel as private data of the connection; after that the
// primary asks and the replica replies, one at a time, by sends:
//
//   primary                               replica
//   Connect(Hello)                    ->  refuses, or Accept(Welcome)
//   Challenge, Prove                  ->  Challenged, Proved
//     (exactly if the cluster has a key; see handshake.h)
//   AskCreation, Format (new logs only) ->  Created, Formatted
//   AskPromise                        ->  Promised, or Refused
//   (reads the answer's bytes, decides)
//   Prepare                           ->  Prepared: the ring may be written
//   (reads records here, writes them there)
//   Install                           ->  Installed
//   (from here on batches and acks; see replica_session.h)
//
// View, Follow, Release, Scrub, Fetch and Hold need no promise. Any request may
// be replied to with Failed, or with Changed. Numbers are little-endian. What
// arrives is never trusted: a message that is too short, too long, or says what
// can't be, is none.
//
// Invariants:
//   MSG1. Nothing is decoded, and nothing done, of bytes whose sum does not
//         fit: they were changed on their way, or are of another log. That ends
//         the connection, and may be tried again.
//
// Thread safety: values and pure functions.
// References: protocol P-A4; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_MESSAGES_H_
#define ALPHEUS_RECOVERY_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/core/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "quorum/cluster_key.h"
#include "quorum/promise.h"
#include "recovery/refusals.h"
#include "recovery/replica.h"
#include "recovery/scrub_counts.h"
#include "replication/ack.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform.h"

namespace alpheus {

inline constexpr uint32_t kProtocolVersion = 8;

// Every fabric carries as many bytes of private data.
inline constexpr size_t kHelloBytes = 56;

struct Hello {
  Uuid cluster_id;
  Uuid log_id;
  PrimaryId primary;

  bool operator==(const Hello&) const = default;
};

struct Welcome {
  NodeId node;
  uint64_t incarnation = 0;    // of the replica; 0: there is none yet
  uint64_t ring_capacity = 0;  // bytes; 0: there is no replica
  Epoch promised;              // what a ballot must be above
  uint64_t configuration_id = 0;
  Platform platform = {};  // of the replica, as its node's operator declared

  bool operator==(const Welcome&) const = default;
};

// At most kHelloBytes each; magic and version mean the same in all versions of
// the protocol, and so does a rejection. From version 8 on the last bytes of a
// hello and a welcome are their sum. DecodeHello and DecodeWelcome: Unavailable
// (MSG1), InvalidArgument (not such a message), Unimplemented (another protocol
// version, both named). Requires: a node of at most 32 bits.
std::string EncodeHello(const Hello& hello);
absl::StatusOr<Hello> DecodeHello(std::string_view bytes);
std::string EncodeWelcome(const Welcome& welcome);
absl::StatusOr<Welcome> DecodeWelcome(std::string_view bytes);
// Why a connection was refused, cut to kHelloBytes. Requires: !why.ok().
// Without a sum it can be read by all versions; with one by this one only.
// Decoded it is never OK: who said nothing that can be read is Unavailable, and
// so are bytes of this version that were changed on their way.
enum class RejectionSum { kNone, kSummed };
std::string EncodeRejection(const absl::Status& why,
                            RejectionSum sum = RejectionSum::kSummed);
absl::Status DecodeRejection(std::string_view bytes);

// Makes an empty replica where there is none (P-A4: "formatted on all N members
// by one operator's command"); or a blank one of a log that is there (P-A5).
struct Format {
  uint64_t region_bytes = 0;
  Configuration configuration;  // names all members with their incarnations
  std::string log_name;         // for messages and file names; see log_id.h
  // 0: that of the configuration, which names this node; else the configuration
  // does not name it, and the replica is blank.
  uint64_t incarnation = 0;
  // Of a replica that is there, and that nobody has opened: it is replaced. 0:
  // none may be there.
  uint64_t replaces = 0;

  bool operator==(const Format&) const = default;
};
struct Formatted {
  bool operator==(const Formatted&) const = default;
};

// Of which creation is this replica, and has somebody opened it? Whoever makes
// a log asks it: a creation that was cut off left replicas on some members.
struct AskCreation {
  bool operator==(const AskCreation&) const = default;
};
struct Created {
  Configuration configuration;
  // It has promised, or installed, or is of a log that is there (blank).
  bool is_used = false;

  bool operator==(const Created&) const = default;
};

struct AskPromise {
  Promise promise;  // of the primary that said Hello
  // That the primary has its members of: an older one than the replica's is
  // refused (P-A5).
  uint64_t configuration_id = 1;

  bool operator==(const AskPromise&) const = default;
};
// The promise is on media, and nobody else may write any more.
struct Promised {
  RegionKey answer_key;  // of answer_wire.h, to be read from offset 0
  uint64_t answer_bytes = 0;
  RegionKey ring_key;  // for reading

  bool operator==(const Promised&) const = default;
};
struct Refused {
  Promise standing;

  bool operator==(const Refused&) const = default;
};

// After the answer has been read: it is forgotten then.
struct Prepare {
  Epoch epoch;
  bool set_repairing = false;

  bool operator==(const Prepare&) const = default;
};
struct Prepared {
  RegionKey ring_key;  // for reading and writing

  bool operator==(const Prepared&) const = default;
};

// For one connection; never 0.
SessionId NewSession(RandomSource& random);

struct Install {
  Installation installation;
  SessionId session;
  uint32_t credits = 0;  // receives that the replica is to post

  bool operator==(const Install&) const = default;
};
struct Installed {
  bool operator==(const Installed&) const = default;
};

// The replica could not; the connection is of no more use.
struct Failed {
  absl::Status status;  // not OK; a very long text is cut

  bool operator==(const Failed&) const = default;
};

// Lets the region be looked at (remote_region.h); needs no promise, ends with
// the connection.
struct View {
  bool operator==(const View&) const = default;
};
struct Viewed {
  RegionKey region_key;       // for reading: the whole region
  uint64_t region_bytes = 0;  // the ring are the last ring_capacity of them
  RefusalCounts refusals{};   // by the node, since it started
  ScrubCounts scrubbed{};     // of this replica, as Scrubbed::total

  bool operator==(const Viewed&) const = default;
};

// How far is this replica? For who follows the log (remote_tail.h), between
// reads of what a View gave out; as often as it likes.
struct Follow {
  Epoch table_epoch;  // of the table that it has; 0: none

  bool operator==(const Follow&) const = default;
};
struct Followed {
  Epoch log_epoch;
  bool repairing = false;
  bool in_session = false;  // of log_epoch: records come, or may
  bool is_held = false;     // by a primary of its machine, as its own replica
  uint32_t replica_count = 1;  // N and W of its configuration
  uint32_t write_quorum = 1;
  uint64_t configuration_id = 1;  // not 0
  Promise promised;               // that it gave last; epoch 0: none
  LogPosition head;               // in its superline
  // In log_epoch's sessions; what was before the epoch is persisted, too.
  Lsn persisted_lsn;
  // Somebody who wrote the log knew that W replicas had persisted so much.
  Lsn durable_lsn;
  // Behind the last record that it has, as far as it looked since the node
  // started; nothing if it did not.
  std::optional<RingOffset> end;
  EpochTable table;  // of log_epoch; no entries if it is the asker's

  bool operator==(const Followed&) const = default;
};

// The node's daemon lets go of the region, for a process of its own machine
// that is to be primary with it (P-A7). It takes it back when that one ends.
struct Release {
  bool operator==(const Release&) const = default;
};
struct Released {
  bool operator==(const Released&) const = default;
};

// 128 bits that one end drew for this connection; not 0.
struct Nonce {
  uint64_t high = 0;
  uint64_t low = 0;

  bool operator==(const Nonce&) const = default;
};

// Before all others, where the cluster has a key (handshake.h).
struct Challenge {
  Nonce nonce;  // the primary's

  bool operator==(const Challenge&) const = default;
};
struct Challenged {
  Nonce nonce;  // the replica's
  Digest proof{};

  bool operator==(const Challenged&) const = default;
};
struct Prove {
  Digest proof{};

  bool operator==(const Prove&) const = default;
};
struct Proved {
  bool operator==(const Proved&) const = default;
};

// How is this replica, and shall it be scrubbed (scrubbing.h)? As often as
// somebody wants to know; a pass is over when there is one pass more.
struct Scrub {
  bool start = false;

  bool operator==(const Scrub&) const = default;
};
// LSNs, [first, end).
struct LsnRun {
  Lsn first;
  Lsn end;

  bool operator==(const LsnRun&) const = default;
};
inline constexpr size_t kScrubbedRunsMax = 64;
struct Scrubbed {
  uint64_t passes = 0;  // whole ones, since the node started
  // One that was asked for has not ended; `pass` says how far it is.
  bool is_running = false;
  // Nothing counts here: the replica is empty, or `repairing`.
  bool is_empty = false;
  // Since the node started, or the replica was made. What is not repaired is in
  // it once: of the last whole pass.
  ScrubCounts total{};
  ScrubCounts pass{};  // the one that runs, or the last one
  // The first ones that are known to be damaged: that the last whole pass, or
  // the one that runs, could not repair, or an opening could not read.
  std::vector<LsnRun> unrepairable;

  bool operator==(const Scrubbed&) const = default;
};

// A primary has the region of this node's replica, and its lock (P-A7): its own
// machine's daemon is to say when somebody wants a promise of it, or to scrub
// it.
struct Hold {
  Promise promise;  // that the replica gave to this primary
  // How its own scrubbing of it is.
  Scrubbed scrubbed = {};

  bool operator==(const Hold&) const = default;
};
// The reply, whenever that is: somebody asks for a higher one. Or, as somebody
// said it, a Scrub or a Fetch.
struct Wanted {
  Promise promise;

  bool operator==(const Wanted&) const = default;
};

// Shows bytes of the replica's ring to who repairs its own (record_repair.h).
inline constexpr uint32_t kFetchBytesMax = uint32_t{32} << 10;
struct Fetch {
  RingOffset from;     // whole lines
  uint32_t bytes = 0;  // 1 to kFetchBytesMax

  bool operator==(const Fetch&) const = default;
};
// The first ones of them, maybe none: what may be shown ends there. To a
// primary that holds the replica a Fetch comes as a reply; this is what it asks
// next, and holds on.
struct Fetched {
  RingOffset from;  // as it was asked
  std::vector<std::byte> bytes;

  bool operator==(const Fetched&) const = default;
};

// What came is not what was sent (MSG1); nothing of it was done. The connection
// is of no more use.
struct Changed {
  bool operator==(const Changed&) const = default;
};
// What it means to whoever asked: Unavailable, to be tried again.
absl::Status RequestChanged();

using Message =
    std::variant<Format, Formatted, AskPromise, Promised, Refused, Prepare,
                 Prepared, Install, Installed, Failed, View, Viewed, Release,
                 Released, Challenge, Challenged, Prove, Proved, Follow,
                 Followed, Scrub, Scrubbed, Hold, Wanted, Fetch, Fetched,
                 Changed, AskCreation, Created>;

// The largest message: an Install with a full epoch table.
inline constexpr size_t kMessageBytesMax = size_t{64} * 1024;

// Requires: a table of at most kEpochTableCapacity entries.
std::vector<std::byte> EncodeMessage(Uuid log_id, const Message& message);
// `log_id` seeds the sum and the keys of a table. Errors: Unavailable (MSG1),
// InvalidArgument (it is no message).
absl::StatusOr<Message> DecodeMessage(Uuid log_id,
                                      std::span<const std::byte> bytes);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_MESSAGES_H_
