// SPDX-License-Identifier: Apache-2.0
// followed_replica: one replica of a log that a reader follows: its reported
// state, and bytes of its ring.
//
// Idea: one connection has a View, whose key allows one-sided reads of the
// ring, and sends a Follow whenever the tail wants to know more. One thread of
// the replica's program both answers Follow and publishes heads. So if the head
// in an answer has not passed some bytes, they were not reused before that
// answer, and the bytes that were read before it are good. A Follow keeps the
// view alive, too.
//
// Invariants:
//   FR1. No byte of the replica changes.
//   FR2. All answers and reads are of one incarnation of the replica: another
//        one means another connection.
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
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/readers_list.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/registered_bytes.h"

namespace alpheus::recovery {

class FollowedReplica {
 public:
  // Starts to connect; errors show in status(). `list` is the reader's list of
  // members.
  FollowedReplica(fabric::Fabric& fabric, ControlCall::Options at,
                  const ReadersList& list);

  // Takes what the fabric brought. Returns false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Returns the status; after an error the object is of no more use. Errors: as
  // ControlCall; FailedPrecondition (CheckReadersList).
  const absl::Status& status() const { return control_call_.status(); }
  // Returns the last answer; nothing before the first.
  const std::optional<Followed>& said() const { return said_; }
  uint64_t answers() const { return answers_; }
  // Returns the newest id that it showed, also if it does not serve; 0: none
  // yet.
  uint64_t configuration_id() const;
  const EpochTable& table() const { return table_; }
  uint64_t ring_capacity() const {
    return control_call_.server_hello()->ring_capacity;
  }

  // Returns true if the replica may be asked or read from now.
  bool may_ask() const { return said_.has_value() && control_call_.may_ask(); }
  // Asks for another answer.
  void Ask();

  // Reads `bytes` of the ring from `from` on into the same places of `ring`.
  // Requires: at most its capacity; no read is running.
  void Read(const replication::RegisteredBytes& ring, RingOffset from,
            uint64_t bytes);
  bool is_reading() const { return reads_ > 0 || to_read_ > 0; }

 private:
  absl::Status OnReply(const Message& reply);
  absl::Status OnFollowed(const Followed& followed);
  absl::Status ContinueReading();

  fabric::Fabric& fabric_;
  const ReadersList list_;
  uint64_t configuration_id_ = 0;  // from its answers
  fabric::RegionKey region_key_;
  uint64_t ring_offset_ = 0;  // from the start of the region
  std::optional<Followed> said_;
  uint64_t answers_ = 0;
  EpochTable table_;

  // The running read:
  const replication::RegisteredBytes* into_ = nullptr;
  uint64_t place_ = 0;    // place in the ring of the next post
  uint64_t to_read_ = 0;  // not posted yet
  uint32_t reads_ = 0;    // posted
  ControlCall control_call_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_FOLLOW_FOLLOWED_REPLICA_H_
