// SPDX-License-Identifier: Apache-2.0
// remote_tail: follows the durable records of a log by looking at its replicas,
// from any host, while a primary writes, when it dies, and when another one
// goes on.
//
// Idea: a replica knows what it persisted; what is durable follows from what
// several of them say, or from what a primary told one of them
// (durable_range.h). The tail asks all replicas again and again, and reads the
// bytes of the records that are durable by one-sided reads from one of them,
// in chunks, each to the same places of a ring of its own. Then it asks that
// replica once more; if its head has not passed the chunk, and its epoch is the
// same, nobody used the bytes again in between. They are walked like a
// replica's ring: header and payload of each record are checked. A replica that
// goes away costs the chunk that was read from it; the tail goes on with
// another one, and comes back when it can.
//
// Invariants:
//   RT1. Nothing above durable_lsn() is shown, and that is durable: W replicas
//        have persisted it, and every later opening keeps it (DR1 of
//        durable_range.h, P-C1). So no opening ever drops what was shown.
//   RT2. What is shown at an LSN is the record that every opening finds there
//        (P-C4). It is read only from a replica that
//          a. is not repairing, and whose epoch E is not older than any that
//             was named when durable_lsn() was found: up to what it persisted
//             it has E's log, and what was durable in an epoch up to E is in
//             E's log (P-H3). A replica of an older epoch may have another
//             record there, which an opening has dropped;
//          b. says that it persisted the record, before its bytes were read.
//        The record's epoch owns its LSN in E's table, and its checksums hold.
//   RT3. A chunk is walked only after an answer later than its reading, with
//        the same epoch, not repairing, and a head not beyond the chunk: the
//        bytes were not used again (P-L4), so a checksum is no matter of luck.
//   RT4. Each record once, in LSN order, from the first to be shown on; ABORTED
//        ones are left out. If the head has passed the next one, that is
//        OutOfRange, on each replica that could be read from.
//   RT5. "No more" is said only if nobody can know of more: is_caught_up()
//        means that no epoch had acknowledged anything, when the tail was told,
//        that is newer than the newest which it heard of. For in_doubt() is
//          a. that so few answered that an opening could have had its promises
//             from the others, and W or more of these may have installed it;
//          b. that one has promised an epoch above the newest log epoch, and W
//             or more of the others may have installed it, or fewer than an
//             opening quorum of the list answered: who changes the members ends
//             the list by promises of an opening quorum of it, or leaves a
//             newer configuration on so many that each opening quorum has one
//             of them (OQ4 of opening_quorums.h);
//          c. that nobody has the reader's list: it may never have been in
//             force.
//        A member that shows a newer configuration than the reader's list ends
//        the tail: that list may name nobody who has the rest of the log.
// It promises nothing and holds nobody up: no replica writes for it, and it
// keeps nothing from being cleaned.
// Memory: one ring of the log's capacity, of which pages are used as the tail
// goes round.
// Thread safety: one thread.
// References: protocol P-A1, P-A4, P-A6, P-C1, P-C4, P-H3, P-L4;
// docs/design/reading_and_scrubbing.md.
#ifndef ALPHEUS_RECOVERY_REMOTE_TAIL_H_
#define ALPHEUS_RECOVERY_REMOTE_TAIL_H_

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
#include "log/core/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "quorum/promise.h"
#include "recovery/followed_replica.h"
#include "recovery/readers_list.h"
#include "replication/fabric/fabric.h"
#include "replication/registered_bytes.h"

namespace alpheus {

class RemoteTail {
 public:
  struct Member {
    NodeId node;
    std::string address;
    bool is_asked = true;  // else it is only known to be there
  };
  struct Options {
    Uuid cluster_id;
    Uuid log_id;
    uint64_t configuration_id = 1;  // of the list that N, W, members are from
    uint32_t write_quorum = 1;
    std::string list_file = "the cluster file";  // for messages
    std::vector<Member> members;                 // all N
    PrimaryId self;  // of who reads: an incarnation of its own
    Credentials credentials = {};
    Lsn from;  // first to be shown; 0: the head
    // Between two questions to a replica.
    int64_t poll_ns = 10'000'000;
    // Until one that has gone is tried again.
    int64_t retry_ns = 500'000'000;
    // One that does not answer for so long is given up.
    int64_t silence_ns = 5'000'000'000;
  };
  struct Record {
    Lsn lsn;
    Epoch epoch;
    std::span<const std::byte> payload;  // until the next call of Next or Poll
  };

  // Fabric and clock must outlive it.
  RemoteTail(Fabric& fabric, const Clock& clock, Options options);

  // False if it is of no connection of this tail.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);
  // Connects, asks, reads. To be called after something was taken, when Next
  // has nothing more, and at NextPoll.
  void Poll();
  Deadline NextPoll() const;
  // Asks each replica in reach as soon as it may be: is_settled() and what
  // follows from it are of answers to questions after this call from now on.
  void AskAnew();

  // The next record, if its bytes are here.
  std::optional<Record> Next();

  // OK, or why there will be no more records: OutOfRange (the next one was
  // cleaned; the message names the head), DataLoss (no replica in reach can
  // read it), FailedPrecondition (a member has a newer configuration).
  const absl::Status& status() const { return status_; }
  // Highest LSN that is known to be durable.
  Lsn durable_lsn() const { return durable_lsn_; }
  // To be shown next; 0: the head, which is not known yet.
  Lsn next_lsn() const { return next_lsn_ == Lsn(0) ? head_lsn_ : next_lsn_; }
  // Where the log begins, as far as it is known; 0: not yet.
  Lsn head_lsn() const { return head_lsn_; }
  // Next may have something.
  bool has_records() const { return stage_ == Stage::kShowing; }
  // Each replica has answered, or can't be reached, since the last AskAnew, or
  // the beginning.
  bool is_settled() const;
  // And what is known to be durable was shown, and nothing is in doubt.
  bool is_caught_up() const;
  // Unavailable if there may be records of which nobody in reach knows that
  // they are durable, whatever they hold (RT5): who says what.
  absl::Status Doubt() const;
  // The newest log epoch that a member in reach has.
  Epoch newest_epoch() const { return newest_; }
  // At least one replica is in reach and has answered.
  bool is_in_reach() const;
  // That records are read from; 0: none.
  NodeId source() const;
  // OK, or why each replica that is not in reach is not.
  absl::Status Absences() const;

 private:
  struct Replica {
    Member member;
    std::unique_ptr<FollowedReplica> followed;
    absl::Status absence;     // why it is not there, the last time
    bool is_settled = false;  // has answered, or could not be reached
    int64_t due_ns = 0;       // to be asked, or tried, again
    int64_t silent_until_ns = 0;
    uint64_t answers = 0;  // seen
    uint64_t stale = 0;    // so many answers do not settle it
    Lsn damaged_lsn;       // that it could not read; 0: none
  };
  enum class Stage {
    kIdle,
    kReading,   // a chunk is on its way
    kChecking,  // it is here; the source is asked once more
    kShowing,
  };

  void Care(Replica& replica, int64_t now);
  void Connect(Replica& replica, int64_t now);
  void GiveUp(Replica& replica, const absl::Status& why, int64_t now);
  void Learn();
  ReadersList List() const;
  void CheckList(const Replica& replica);
  bool AsksAll() const;
  Replica* ChooseSource();
  bool MayBeRead(const Replica& replica) const;
  Lsn ReadableLsn(const Replica& replica) const;
  // Whether it has what is to be shown next.
  bool HasNext(const Replica& replica) const;
  void CheckOvertaken();
  void Begin(Replica& source);
  absl::Status MakeRing(uint64_t capacity);
  void Advance();
  void Check();
  // Nothing more can be read of the chunk.
  void EndChunk(bool is_damaged);

  Fabric& fabric_;
  const Clock& clock_;
  const Options options_;
  // Destroyed after the replicas, whose reads lie in it.
  uint64_t capacity_ = 0;
  std::unique_ptr<std::byte[]> ring_bytes_;
  std::unique_ptr<RegisteredBytes> ring_;
  std::vector<Replica> replicas_;
  absl::Status status_;
  Lsn durable_lsn_;
  Epoch durable_epoch_;  // the newest one named when that was found
  Epoch newest_;
  Lsn head_lsn_;
  Lsn next_lsn_;  // 0: nothing was shown yet, and the head is to be first
  // Of next_lsn_ or a record before it; LSN 0: not known.
  LogPosition place_{Lsn(0), RingOffset(), 0};

  Stage stage_ = Stage::kIdle;
  Replica* source_ = nullptr;
  uint64_t asked_ = 0;  // answers of the source before the question
  EpochTable table_;    // of the chunk
  Epoch chunk_epoch_;
  Lsn readable_lsn_;          // in the chunk, or behind it
  uint64_t chunk_bytes_ = 0;  // of the next chunk, or this one
  bool is_any_walked_ = false;
  std::optional<RecordCursor> cursor_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REMOTE_TAIL_H_
