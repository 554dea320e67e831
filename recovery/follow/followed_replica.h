// SPDX-License-Identifier: Apache-2.0
// followed_replica: one replica of a log that somebody follows: how far it says
// it is, and bytes of its ring.
//
// Idea: one connection with a View, whose key lets the ring be read by
// one-sided reads, and a Follow as often as the tail wants to know more. A
// Follow is answered by the replica's program, which also publishes heads, one
// after the other: what was read between two answers had not been used again if
// the second one's head is not beyond it. It keeps the view alive, too.
//
// Invariants:
//   FR1. No byte of the replica changes.
//   FR2. All that is said and read is of one incarnation of the replica:
//        another one is another connection.
//   FR3. table() is of said()->log_epoch.
// Thread safety: one thread.
// References: protocol P-A6, P-L4, P-H17; remote_tail.h.
#ifndef ALPHEUS_RECOVERY_FOLLOW_FOLLOWED_REPLICA_H_
#define ALPHEUS_RECOVERY_FOLLOW_FOLLOWED_REPLICA_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "recovery/protocol/inquiry.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/readers_list.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/registered_bytes.h"

namespace alpheus {

class FollowedReplica {
 public:
  // Starts to connect; errors show in status(). `list` is the reader's.
  FollowedReplica(Fabric& fabric, Inquiry::Options at, const ReadersList& list);

  // False if it is of another connection.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // Errors: as Inquiry; FailedPrecondition (CheckReadersList). It is of no more
  // use then.
  const absl::Status& status() const { return inquiry_.status(); }
  // What it said last; nothing before its first answer.
  const std::optional<Followed>& said() const { return said_; }
  uint64_t answers() const { return answers_; }
  // The newest that it showed, also if it serves nobody; 0: none yet.
  uint64_t configuration_id() const;
  const EpochTable& table() const { return table_; }
  uint64_t ring_capacity() const { return inquiry_.welcome()->ring_capacity; }

  // May be asked, or read from, now.
  bool may_ask() const { return said_.has_value() && inquiry_.may_ask(); }
  // Another answer is to come.
  void Ask();

  // Reads `bytes` of the ring from `from` on into the same places of `ring`.
  // Requires: at most its capacity; nothing is being read.
  void Read(const RegisteredBytes& ring, RingOffset from, uint64_t bytes);
  bool is_reading() const { return reads_ > 0 || to_read_ > 0; }

 private:
  absl::Status TakeReply(const Message& reply);
  absl::Status TakeFollowed(const Followed& followed);
  absl::Status ReadOn();

  Fabric& fabric_;
  const ReadersList list_;
  uint64_t configuration_id_ = 0;  // by its answers
  RegionKey region_key_;
  uint64_t ring_offset_ = 0;  // from the start of the region
  std::optional<Followed> said_;
  uint64_t answers_ = 0;
  EpochTable table_;

  // Being read:
  const RegisteredBytes* into_ = nullptr;
  uint64_t place_ = 0;    // in the ring, next
  uint64_t to_read_ = 0;  // not posted yet
  uint32_t reads_ = 0;    // posted
  Inquiry inquiry_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_FOLLOW_FOLLOWED_REPLICA_H_
