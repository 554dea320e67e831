// SPDX-License-Identifier: Apache-2.0
// messages: the messages of a primary and a replica until records flow.
//
// Idea: one connection serves one primary process and one replica of one log.
// Hello and ServerHello travel as private data of the connection. After that
// the primary asks and the replica replies, one request at a time, by sends:
//
//   primary                               replica
//   Connect(Hello)                    ->  refuses, or Accept(ServerHello)
//   Challenge, Prove                  ->  Challenged, Proved
//     (exactly if the cluster has a key; see handshake.h)
//   AskCreation, Format (new logs only) ->  Created, Formatted
//   Prepare                           ->  Promised, or Refused
//   (reads the report's bytes, decides)
//   OpenForRepair                     ->  RepairOpened: the ring may be written
//   (reads records here, writes them there)
//   Install                           ->  Installed
//     (or, to delete the log: Mark    ->  DeletionState; P-D1)
//   (from here on batches and acks; see primary_session.h)
//
// View, Follow, Release, Scrub, Fetch, Claim, Hear, Instruct, AskChange,
// AskDeletion and Remove need no promise. Any request may be answered by
// Failed, or by Changed. Numbers are little-endian. Bytes that arrive are never
// trusted: a message that is too short, too long, or impossible is no message.
//
// Invariants:
//   MSG1. Bytes whose sum does not hold are not decoded, and nothing is done
//         for them: they were changed on their way, or are of another log. The
//         connection ends, and may be tried again.
//
// Thread safety: values and pure functions.
// References: protocol P-A4; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_MESSAGES_H_
#define ALPHEUS_RECOVERY_PROTOCOL_MESSAGES_H_

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
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/promise.h"
#include "quorum/members/cluster_key.h"
#include "recovery/protocol/installation.h"
#include "recovery/protocol/members_change.h"
#include "recovery/protocol/reject_counters.h"
#include "recovery/protocol/scrub_counts.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"
#include "replication/wire/ack.h"

namespace alpheus::recovery {

inline constexpr uint32_t kProtocolVersion = 26;

// Bytes of private data; every fabric carries that many.
inline constexpr size_t kHelloBytes = 56;

struct Hello {
  Uuid cluster_id;
  Uuid log_id;
  quorum::PrimaryId primary;

  bool operator==(const Hello&) const = default;
};

struct ServerHello {
  NodeId node;
  uint64_t incarnation = 0;    // the replica's; 0: there is none yet
  uint64_t ring_capacity = 0;  // bytes; 0: there is no replica
  Epoch promised;              // a ballot must be above it
  uint64_t configuration_id = 0;
  replication::Platform platform = {};  // as the node's operator declared it

  bool operator==(const ServerHello&) const = default;
};

// At most kHelloBytes each. Magic and version mean the same in all versions of
// the protocol, and so does a rejection. From version 8 on Hello and
// ServerHello end with their sum. DecodeHello and DecodeServerHello:
// Unavailable (MSG1), InvalidArgument (not such a message), Unimplemented
// (another protocol version; names both). Requires: a node of at most 32 bits.
std::string EncodeHello(const Hello& hello);
absl::StatusOr<Hello> DecodeHello(std::string_view bytes);
std::string EncodeServerHello(const ServerHello& server_hello);
absl::StatusOr<ServerHello> DecodeServerHello(std::string_view bytes);
// The reason of a refused connection, cut to kHelloBytes. Requires: !why.ok().
// All versions can read one without a sum; only this version one with a sum. A
// decoded one is never OK: unreadable bytes are Unavailable, and so are bytes
// of this version that were changed on their way.
enum class RejectionSum { kNone, kSummed };
std::string EncodeRejection(const absl::Status& why,
                            RejectionSum sum = RejectionSum::kSummed);
absl::Status DecodeRejection(std::string_view bytes);

// Makes an empty replica where there is none (P-A4: "formatted on all N members
// by one operator's command"), or a blank one of an existing log (P-A5).
struct Format {
  uint64_t region_bytes = 0;
  Configuration configuration;  // names all members with their incarnations
  std::string log_name;         // for messages and file names; see log_id.h
  // The replica's incarnation. 0: that in the configuration, which names this
  // node. Else the configuration does not name it, and the replica is blank.
  uint64_t incarnation = 0;
  // Incarnation of an existing replica, never opened, that is replaced. 0:
  // there must be none.
  uint64_t replaces = 0;

  bool operator==(const Format&) const = default;
};
struct Formatted {
  bool operator==(const Formatted&) const = default;
};

// Asks of which creation a replica is, and whether it was opened. A creation
// that was cut off leaves replicas on some members.
struct AskCreation {
  bool operator==(const AskCreation&) const = default;
};
struct Created {
  Configuration configuration;
  // True if it has promised, or installed, or is a blank replica of an existing
  // log.
  bool is_used = false;

  bool operator==(const Created&) const = default;
};

// Says how far the log's deletion has come at this replica. The reply to
// AskDeletion, Mark and Remove, and to a Prepare of a replica that is marked.
struct DeletionState {
  Deletion deletion = Deletion::kNone;
  // The replica's own: a mark counts for this list (P-D3).
  Configuration configuration;

  bool operator==(const DeletionState&) const = default;
};
// Asks for it. Needs no promise; may be sent at any rate.
struct AskDeletion {
  bool operator==(const AskDeletion&) const = default;
};
// Has the replica marked as deleted. Sent by the owner of the promise of
// `epoch`, after the state report was read. The mark is on media before the
// reply; the records stay.
struct Mark {
  Epoch epoch;

  bool operator==(const Mark&) const = default;
};
// Says that the deletion is decided (P-D3): the replica is marked if it is not
// yet, and its records go. Needs no promise.
struct Remove {
  bool operator==(const Remove&) const = default;
};

struct Prepare {
  quorum::Promise promise;  // asked for, by the primary that said Hello
  // Id of the primary's list of members. One older than the replica's is
  // refused (P-A5).
  uint64_t configuration_id = 1;
  // The latest promise that the primary knew of when it decided to open the
  // log. Not set: it opens the log whatever promises it meets. A replica that
  // has gone further with a later promise refuses (OSV3 of opening_service.h).
  std::optional<Epoch> promised_max = std::nullopt;
  // The report shall name each record from the head on, since the primary will
  // clean some, or looks for damage.
  bool from_head = false;

  bool operator==(const Prepare&) const = default;
};
// The promise is on media, and no other process may write any more.
struct Promised {
  fabric::RegionKey
      report_key;  // state report (state_report_wire.h), read from offset 0
  uint64_t report_bytes = 0;
  fabric::RegionKey ring_key;  // for reading

  bool operator==(const Promised&) const = default;
};
struct Refused {
  quorum::Promise current;

  bool operator==(const Refused&) const = default;
};

// Sent after the report has been read; the replica then drops the report.
struct OpenForRepair {
  Epoch epoch;
  bool set_repairing = false;
  // Ring offset before which the primary will write; 0: nothing is written. The
  // replica first raises its ceiling to it, at most to a lap after its head,
  // and forgets its place if its report named records before that (REP8 of
  // local_replica.h).
  RingOffset ceiling = {};

  bool operator==(const OpenForRepair&) const = default;
};
struct RepairOpened {
  fabric::RegionKey ring_key;  // for reading and writing

  bool operator==(const RepairOpened&) const = default;
};

// Returns an id for one connection; never 0.
replication::SessionId NewSession(RandomSource& random);

struct Install {
  Installation installation;
  replication::SessionId session;
  uint32_t credits = 0;  // receives that the replica must post
  // The primary says something at least so often, in milliseconds, as long as
  // it can. 0: it promises nothing, and its silence means nothing.
  uint32_t heartbeat_ms = 0;

  bool operator==(const Install&) const = default;
};
struct Installed {
  bool operator==(const Installed&) const = default;
};

// The request failed; the connection is of no more use.
struct Failed {
  absl::Status status;  // not OK; a very long text is cut

  bool operator==(const Failed&) const = default;
};

// Asks for a key to read the region (remote_region.h). Needs no promise; ends
// with the connection.
struct View {
  bool operator==(const View&) const = default;
};
struct Viewed {
  fabric::RegionKey region_key;  // for reading: the whole region
  uint64_t region_bytes = 0;     // the ring are the last ring_capacity of them
  RejectCounts rejects{};        // by the node, since it started
  ScrubCounts scrubbed{};        // of this replica, as Scrubbed::total

  bool operator==(const Viewed&) const = default;
};

// Asks for the replica's state, for a reader that follows the log
// (remote_tail.h), between reads by a View's key. It may ask at any rate.
struct Follow {
  Epoch table_epoch;  // epoch of the asker's table; 0: none

  bool operator==(const Follow&) const = default;
};
struct Followed {
  Epoch log_epoch;
  bool repairing = false;
  bool in_session = false;     // a session of log_epoch: records may come
  bool is_claimed = false;     // a primary of its machine has it as its own
  uint32_t replica_count = 1;  // N and W of its configuration
  uint32_t write_quorum = 1;
  uint64_t configuration_id = 1;  // not 0
  quorum::Promise promised;       // last promise; epoch 0: none
  LogPosition head;               // in its superline
  // Last LSN persisted in log_epoch's sessions; older records are persisted,
  // too.
  Lsn persisted_lsn;
  // Last LSN that a primary knew to be persisted on W replicas.
  Lsn durable_lsn;
  // End of the last record that it has found since the node started; empty if
  // it did not look.
  std::optional<RingOffset> end;
  // When the certificate that its node shows to others expires, in seconds
  // since 1970; 0: the cluster does not encrypt.
  int64_t certificate_end_s = 0;
  EpochTable table;  // of log_epoch; no entries if it is the asker's

  bool operator==(const Followed&) const = default;
};

// Asks the node's daemon to release the region, for a process of its own
// machine that is to be primary with it (P-A7). The daemon takes it back when
// that process ends.
struct Release {
  // As in Prepare. The reply is Refused if the replica has promised a later
  // epoch: its primary keeps it.
  std::optional<Epoch> promised_max = std::nullopt;

  bool operator==(const Release&) const = default;
};
struct Released {
  bool operator==(const Released&) const = default;
};

// 128 random bits that one end drew for this connection; not 0.
struct Nonce {
  uint64_t high = 0;
  uint64_t low = 0;

  bool operator==(const Nonce&) const = default;
};

// Sent before all others, where the cluster has a key (handshake.h).
struct Challenge {
  Nonce nonce;  // the primary's

  bool operator==(const Challenge&) const = default;
};
struct Challenged {
  Nonce nonce;  // the replica's
  quorum::Digest proof{};

  bool operator==(const Challenged&) const = default;
};
struct Prove {
  quorum::Digest proof{};

  bool operator==(const Prove&) const = default;
};
struct Proved {
  bool operator==(const Proved&) const = default;
};

// Asks for the state of scrubbing (scrubbing.h), and may start a pass. May be
// sent at any rate; a pass is over when `passes` has grown.
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
  uint64_t passes = 0;  // whole passes since the node started
  // True while a pass that was asked for runs; `pass` says how far it is.
  bool is_running = false;
  // True if nothing counts here: the replica is empty, or `repairing`.
  bool is_empty = false;
  // Sums since the node started, or since the replica was made. Unrepaired
  // damage is in it once, as the last whole pass found it.
  ScrubCounts total{};
  ScrubCounts pass{};  // the running pass, or the last one
  // The first runs that are known to be damaged: the last whole pass, or the
  // running one, could not repair them, or an opening could not read them.
  std::vector<LsnRun> unrepairable;

  bool operator==(const Scrubbed&) const = default;
};

// Asks for a change of the members while the log runs (epoch_succession.h). A
// node gives it to the primary that has its replica, and replies with what that
// primary said last. So an operator asks again, by the same id, until the
// change is over; a primary begins it once.
inline constexpr size_t kAddressBytesMax = 256;
struct AskChange {
  uint64_t id = 0;  // random, not 0
  MembersChange change;
  std::vector<PeerAddress> peers;  // of both lists; at most 2 * kMembersMax

  bool operator==(const AskChange&) const = default;
};

// The state of a change that was asked for.
enum class ChangeWord : uint32_t {
  // No process here can make it: none has this node's replica, or the one that
  // has it can't, or its log has ended (`why`).
  kNobody = 0,
  kWaiting = 1,    // the primary has not said anything of it yet
  kRunning = 2,    // it was begun: users of the log wait
  kInstalled = 3,  // it was made, with `epoch`
  // It was not begun, or no member has the new list: nothing has changed, and
  // the log goes on, perhaps in a later epoch (`why`).
  kRefused = 4,
  // It was not made, or in part: replicas may have either list, and the same
  // change completes it. The log goes on by the list of before (`why`), or it
  // has ended, and nobody says so.
  kCutOff = 5,
};
struct ChangeState {
  uint64_t id = 0;  // of the change; 0: nobody has asked for any
  ChangeWord word = ChangeWord::kNobody;
  Epoch epoch;  // in which the log runs; 0: not known
  // LSNs with which that epoch began: its head, and the next one.
  Lsn head_lsn;
  Lsn next_lsn;
  // Members that are not in sync now; of those that missed the epoch some may
  // have joined since. At most kMembersMax.
  std::vector<NodeId> missing;
  absl::Status why;  // see ChangeWord; a very long text is cut

  bool operator==(const ChangeState&) const = default;
};

// Says that a primary has the region of this node's replica, and its lock
// (P-A7). Asks the daemon to reply when a process wants the promise, a scrub,
// or a change of the members.
struct Claim {
  quorum::Promise promise;  // the replica's promise to this primary
  // State of the primary's own scrubbing of the replica.
  Scrubbed scrubbed = {};
  // The change that it was asked for last.
  ChangeState change_state = {};

  bool operator==(const Claim&) const = default;
};
// The reply to Claim, at any later time: a process asks for a higher promise. A
// Scrub, a Fetch or an AskChange of another process may come as a reply
// instead.
struct Wanted {
  quorum::Promise promise;

  bool operator==(const Wanted&) const = default;
};

// Asks for bytes of the replica's ring, to repair another replica
// (record_repair.h).
inline constexpr uint32_t kFetchBytesMax = uint32_t{32} << 10;
struct Fetch {
  RingOffset from;     // whole lines
  uint32_t bytes = 0;  // 1 to kFetchBytesMax

  bool operator==(const Fetch&) const = default;
};
// The first of these bytes, perhaps none: the bytes that may be shown end
// there. A local primary gets a Fetch as reply to its Claim, and sends this as
// its next request; the claim continues.
struct Fetched {
  RingOffset from;  // as in the request
  std::vector<std::byte> bytes;

  bool operator==(const Fetched&) const = default;
};

// An operator's word to the candidates of a log (election.h).
enum class InstructionKind : uint32_t {
  kElect = 1,  // the node is to become primary
  kDrain = 2,  // the node is to hand over, and not to stand any more
};
struct Instruction {
  InstructionKind kind = InstructionKind::kElect;
  NodeId node;
  uint64_t id = 0;  // random, not 0: one instruction may come by several nodes

  bool operator==(const Instruction&) const = default;
};

// A node's word of the primary of its replica.
enum class PrimaryWord : uint32_t {
  kGone = 0,     // no process has its promise and a connection
  kHeard = 1,    // heard within the silence, or one that promised no heartbeats
  kSilent = 2,   // connected, and not heard within the silence
  kClaimed = 3,  // a process of its machine has the replica: it hears none
};

// Whether a process is a candidate. One that stands does so until its
// connection ends.
enum class Standing : uint32_t {
  kNo = 0,       // it only asks
  kReady = 1,    // it stands
  kDrained = 2,  // it stands, and opens nothing before it is elected
};

// Asks a node for all that candidates must know. Needs no promise. The reply
// comes when it differs from what the asker knows, at the latest after wait_ns.
inline constexpr uint64_t kHearNanosMax = 3'600'000'000'000;
struct Hear {
  Standing standing = Standing::kNo;  // of the process that said Hello
  // For how long it has stood: an older instruction is not for it.
  uint64_t stood_ns = 0;
  uint32_t priority = 0;  // of equally fresh candidates the higher goes first
  Epoch holds;            // epoch that it has open; 0: none
  uint64_t silence_ns = 0;
  uint64_t wait_ns = 0;
  // All that the asker knows: it waits only while this is so.
  PrimaryWord known_word = PrimaryWord::kGone;
  Epoch known_epoch;
  uint64_t known_instruction = 0;
  uint64_t known_candidates = 0;  // DigestOf them

  bool operator==(const Hear&) const = default;
};
// A candidate, as it said itself.
struct CandidateState {
  quorum::PrimaryId candidate;  // its incarnation is of its candidacy
  Standing standing = Standing::kReady;
  uint32_t priority = 0;
  Epoch holds;

  bool operator==(const CandidateState&) const = default;
};
inline constexpr size_t kCandidatesMax = 64;
// Returns a digest that does not depend on the order; 0: there are none.
uint64_t DigestOf(std::span<const CandidateState> candidates);
struct Heard {
  PrimaryWord word = PrimaryWord::kGone;
  quorum::Promise promised;  // the replica's current promise; epoch 0: none
  // The replica's; zeros if the node does not have it now.
  Epoch log_epoch;
  Lsn head_lsn;
  Lsn persisted_lsn;
  std::vector<CandidateState> candidates;  // by connection
  std::optional<Instruction> instruction;  // the last one, for a while
  // Id of the replica's list of members; 0 if the node does not have it now.
  uint64_t configuration_id = 0;

  bool operator==(const Heard&) const = default;
};

// Tells the candidates that stand at a node what an operator wants. The reply
// is Heard.
struct Instruct {
  Instruction instruction;

  bool operator==(const Instruct&) const = default;
};

// The request was damaged on the way (MSG1); nothing of it was done. The
// connection is of no more use.
struct Changed {
  bool operator==(const Changed&) const = default;
};
// Returns Changed as a status for the asker: Unavailable, to be tried again.
absl::Status RequestChanged();

using Message = std::variant<
    Format, Formatted, Prepare, Promised, Refused, OpenForRepair, RepairOpened,
    Install, Installed, Failed, View, Viewed, Release, Released, Challenge,
    Challenged, Prove, Proved, Follow, Followed, Scrub, Scrubbed, Claim, Wanted,
    Fetch, Fetched, Changed, AskCreation, Created, Hear, Heard, Instruct,
    AskChange, ChangeState, Mark, Remove, AskDeletion, DeletionState>;

// The largest message: an Install with a full epoch table.
inline constexpr size_t kMessageBytesMax = size_t{64} * 1024;

// Requires: a table of at most kEpochTableCapacity entries.
std::vector<std::byte> EncodeMessage(Uuid log_id, const Message& message);
// `log_id` seeds the sum and the keys of a table. Errors: Unavailable (MSG1),
// InvalidArgument (the bytes are no message).
absl::StatusOr<Message> DecodeMessage(Uuid log_id,
                                      std::span<const std::byte> bytes);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_MESSAGES_H_
