// SPDX-License-Identifier: Apache-2.0
// remote_tail: follows the durable records of a log by reading its replicas,
// from any host, while a primary writes, dies, and is replaced by another.
//
// Idea: a replica knows what it persisted. The durable records follow from the
// reports of several replicas, or from what a primary told one of them
// (durable_range.h). The tail asks all replicas again and again. It reads the
// bytes of durable records by one-sided reads from one replica, in chunks, each
// to the same places of a ring of its own. Then it asks that replica once more.
// If the head has not passed the chunk, and the epoch is the same, the bytes
// were not reused in between. They are walked like a replica's ring: header and
// payload of each record are checked. A replica that goes away costs the chunk
// that was being read from it. The tail continues with another one, and comes
// back when it can.
//
// Invariants:
//   RT1. Nothing above durable_lsn() is shown, and records up to it are
//        durable: W replicas have persisted them, and every later opening keeps
//        them (DR1 of durable_range.h, P-C1). So no opening ever drops a record
//        that was shown.
//   RT2. The record that is shown at an LSN is the one that every opening finds
//        there (P-C4). It is read only from a replica that
//          a. is not repairing, and whose epoch E is not older than any that
//             was named when durable_lsn() was found. Up to what it persisted
//             it has E's log, which has every record that was durable in an
//             epoch up to E (P-H3). A replica of an older epoch may have
//             another record there, which an opening has dropped;
//          b. says that it persisted the record, before its bytes were read.
//        The record's epoch owns its LSN in E's table, and its checksums hold.
//   RT3. A chunk is walked only after an answer later than its reading, with
//        the same epoch, not repairing, and a head not past the chunk. So the
//        bytes were not reused (P-L4), and no checksum holds by luck.
//   RT4. Each record is shown once, in LSN order, from the first one on;
//        ABORTED ones are left out. If the head has passed the next record on
//        each replica that could be read from, that is OutOfRange.
//   RT5. is_caught_up() means: when the replicas answered, no epoch newer than
//        the newest one that they named had acknowledged anything. Where that
//        is not certain, the tail is *in doubt*, and Doubt() is an error:
//          a. The members that did not answer could be an opening quorum, and W
//             or more of them may have installed a newer epoch.
//          b. A member has promised an epoch above the newest log epoch, and
//             either W or more of the others may have installed it, or fewer
//             than an opening quorum of the list answered. (If an opening
//             quorum answered, a change of members can't hide: it took promises
//             of an opening quorum, or left a newer configuration on one member
//             of each. OPQ4 of opening_quorums.h.)
//          c. No replica has the reader's list: it may never have been in
//             force.
//        If a member shows a newer configuration than the reader's list, the
//        tail ends: the members of the old list may all lack the rest of the
//        log.
// The tail promises nothing and delays nobody: no replica writes for it, and it
// keeps no record from being cleaned.
// Memory: one ring of the log's capacity, of which pages are used as the tail
// advances.
// Thread safety: one thread.
// References: protocol P-A1, P-A4, P-A6, P-C1, P-C4, P-H3, P-L4;
// docs/design/reading_and_scrubbing.md.
#ifndef ALPHEUS_RECOVERY_FOLLOW_REMOTE_TAIL_H_
#define ALPHEUS_RECOVERY_FOLLOW_REMOTE_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/follow/followed_replica.h"
#include "recovery/protocol/readers_list.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/registered_bytes.h"

namespace alpheus::recovery {

class RemoteTail {
 public:
  struct Member {
    NodeId node;
    std::string address;
    bool is_asked = true;  // false: it is not asked
  };
  struct Options {
    Uuid cluster_id;
    Uuid log_id;
    // Id of the list that N, W and members are from.
    uint64_t configuration_id = 1;
    uint32_t write_quorum = 1;
    std::string list_file = "the cluster file";  // for messages
    std::vector<Member> members;                 // all N
    quorum::PrimaryId self;  // the reader, with an incarnation of its own
    Credentials credentials = {};
    Lsn from;  // first to be shown; 0: the head
    // Nanoseconds between two questions to a replica.
    int64_t poll_ns = 10'000'000;
    // Nanoseconds until a lost replica is tried again.
    int64_t retry_ns = 500'000'000;
    // Nanoseconds without an answer after which a replica is given up.
    int64_t reply_timeout_ns = 5'000'000'000;
  };
  struct Record {
    Lsn lsn;
    Epoch epoch;
    // Valid until the next call of Next or Poll.
    std::span<const std::byte> payload;
  };

  // Fabric and clock must outlive the tail.
  RemoteTail(fabric::Fabric& fabric, const Clock& clock, Options options);

  // Takes what the fabric brought. Returns false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);
  // Connects, asks, reads. Call it after something was taken, when Next has
  // nothing more, and at NextPoll.
  void Poll();
  Deadline NextPoll() const;
  // Asks each replica in reach again, as soon as possible. is_settled() and
  // what depends on it now need answers to questions after this call.
  void AskAgain();

  // Returns the next record, if its bytes are here.
  std::optional<Record> Next();

  // Returns OK, or why there will be no more records: OutOfRange (the next one
  // was cleaned; the message names the head), DataLoss (no replica in reach can
  // read it), FailedPrecondition (a member has a newer configuration).
  const absl::Status& status() const { return status_; }
  // Returns the highest LSN that is known to be durable.
  Lsn durable_lsn() const { return durable_lsn_; }
  // Returns the LSN that is shown next; 0: the head, which is not known yet.
  Lsn next_lsn() const { return next_lsn_ == Lsn(0) ? head_lsn_ : next_lsn_; }
  // Returns where the log begins, as far as known; 0: not known yet.
  Lsn head_lsn() const { return head_lsn_; }
  // Returns true if Next may have something.
  bool has_records() const { return stage_ == Stage::kShowing; }
  // Returns true if each replica has answered, or could not be reached, since
  // the last AskAgain, or since the start.
  bool is_settled() const;
  // Returns true if it is settled, every known durable record was shown, and
  // nothing is in doubt.
  bool is_caught_up() const;
  // Returns Unavailable if records may be durable without any replica in reach
  // knowing it (RT5); says which replica says what.
  absl::Status Doubt() const;
  // Returns the newest log epoch of the members in reach.
  Epoch newest_epoch() const { return newest_; }
  // Returns true if at least one replica is in reach and has answered.
  bool is_in_reach() const;
  // Returns the node from which records are read; 0: none.
  NodeId source() const;
  // Returns OK, or why each missing replica is not in reach.
  absl::Status Absences() const;

 private:
  struct TailedReplica {
    Member member;
    std::unique_ptr<FollowedReplica> followed;
    absl::Status absence;     // why it was last lost
    bool is_settled = false;  // answered, or could not be reached
    int64_t due_ns = 0;       // when it is asked or tried again
    int64_t silent_until_ns = 0;
    uint64_t answers = 0;  // answers seen
    uint64_t stale = 0;    // answers up to this one do not settle it
    Lsn damaged_lsn;       // LSN that it could not read; 0: none
  };
  enum class Stage {
    kIdle,
    kReading,   // a chunk is being read
    kChecking,  // the chunk is here; the source is asked once more
    kShowing,
  };

  void Care(TailedReplica& replica, int64_t now);
  void Connect(TailedReplica& replica, int64_t now);
  void Abandon(TailedReplica& replica, const absl::Status& why, int64_t now);
  void Learn();
  ReadersList List() const;
  void CheckList(const TailedReplica& replica);
  bool AsksAll() const;
  TailedReplica* ChooseSource();
  bool MayBeRead(const TailedReplica& replica) const;
  Lsn ReadableLsn(const TailedReplica& replica) const;
  // Returns true if it has the next record.
  bool HasNext(const TailedReplica& replica) const;
  void CheckOvertaken();
  void Begin(TailedReplica& source);
  absl::Status MakeRing(uint64_t capacity);
  void Advance();
  void Check();
  // Ends the chunk: nothing more can be read of it.
  void EndChunk(bool is_damaged);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  const Options options_;
  // Destroyed after the replicas, whose reads lie in it.
  uint64_t capacity_ = 0;
  std::unique_ptr<std::byte[]> ring_bytes_;
  std::unique_ptr<replication::RegisteredBytes> ring_;
  std::vector<TailedReplica> replicas_;
  absl::Status status_;
  Lsn durable_lsn_;
  Epoch durable_epoch_;  // newest epoch named when that was found
  Epoch newest_;
  Lsn head_lsn_;
  Lsn next_lsn_;  // 0: nothing was shown yet; the head comes first
  // Place of next_lsn_ or of a record before it; LSN 0: not known.
  LogPosition place_{Lsn(0), RingOffset(), 0};

  Stage stage_ = Stage::kIdle;
  TailedReplica* source_ = nullptr;
  uint64_t asked_ = 0;  // the source's answers before the question
  EpochTable table_;    // the chunk's
  Epoch chunk_epoch_;
  Lsn readable_lsn_;          // in or after the chunk
  uint64_t chunk_bytes_ = 0;  // of this or the next chunk
  bool is_any_walked_ = false;
  std::optional<RecordCursor> cursor_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_FOLLOW_REMOTE_TAIL_H_
