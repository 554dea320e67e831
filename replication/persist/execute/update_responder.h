// SPDX-License-Identifier: Apache-2.0
// update_responder: runs the responder's steps of any row of the tables. No log
// uses it: records go by persist_responder.h. A node's memory for clients does
// (api/remote).
//
// Idea: the object is a program counter over the row's steps of this side. A
// received message or immediate advances it until the next receive: copies,
// flushes, the ack.
// A row without steps here uses up receives all the same, which must be posted
// again. If the row sends its bytes, the message in a receive must be applied
// first (message_log.h): ApplyReceived does both, when the caller calls it.
// Recovery applies the messages that are left after a crash.
//
// Invariants:
//   UR1. An ack is sent only after the steps before it (P-INV-15).
//   UR2. A receive is posted again only when its message is copied, persistent
//        and counted (P-R5), or has no bytes that matter.
//   UR3. Only messages of this session, whole and in turn, are taken; places
//        outside the region are refused.
// Crash states: those of MessageLog. Any part of an unacknowledged update may
// be there, but b never without a.
// Thread safety: one thread.
// References: method.h; remote persistence taxonomy §3.2, §3.3; protocol P-B6
// P-R5.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_RESPONDER_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_RESPONDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/pmem/persistence.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/message_log.h"
#include "replication/persist/execute/update_message.h"
#include "replication/persist/platform/method.h"
#include "replication/wire/ack.h"
#include "replication/wire/message_slots.h"

namespace alpheus::replication {

template <Persistence P>
class UpdateResponder {
 public:
  struct Options {
    SessionId session;               // not 0
    uint32_t credits = 0;            // receives, at least 2
    uint64_t message_bytes_max = 0;  // bytes of each; a multiple of a line
    std::span<std::byte> region;     // region of the updates
    // Receive buffers in persistent memory, of MessageLog's AreaBytes; empty:
    // they are in DRAM. A requester that flushes must reach them: kRead.
    fabric::LocalBytes buffers = {};
  };

  // Starts, and posts the receives: call it before the connection is accepted.
  // `steps` and `pmem` must outlive the object. Requires: ApplyMessages was
  // called for the buffers. Errors: FailedPrecondition (messages are the log,
  // and the buffers are in DRAM); the medium's; the fabric's.
  static absl::StatusOr<std::unique_ptr<UpdateResponder>> Start(
      P& pmem, std::span<const Step> steps, const Options& options,
      fabric::Fabric& fabric, fabric::ConnectionId connection);

  // Takes one completion of the connection, on which nobody else posts. After
  // an error it is of no more use. Errors: Unavailable (the connection broke),
  // DataLoss (an impossible message), the medium's, the fabric's.
  absl::Status OnCompletion(const fabric::Completion& completion);

  // Applies the messages that wait for it, and gives their credits back.
  // Errors: the medium's, the fabric's.
  absl::Status ApplyReceived();

  // Returns the number of messages in the buffers that are not applied.
  size_t unapplied() const { return unapplied_.size(); }
  // Returns how often the plan's work woke the program.
  uint64_t wake_ups() const { return wake_ups_; }
  // Returns the number of reports, acks and others.
  uint64_t reports() const { return reports_sent_; }

 private:
  // The contents of a receive.
  struct Announcement {
    uint64_t slot = 0;
    bool is_address = false;
    UpdateMessage message = {};  // an address: where the bytes are
  };

  UpdateResponder(P& pmem, std::span<const Step> steps, const Options& options,
                  fabric::Fabric& fabric, fabric::ConnectionId connection);

  fabric::LocalBytes Buffer(uint64_t slot) const;
  absl::StatusOr<Announcement> Read(const fabric::Completion& completion);
  absl::StatusOr<Announcement> ReadMessage(
      const fabric::Completion& completion);
  absl::Status Run(const Announcement& announcement);
  absl::Status Perform(const Step& step, const Announcement& announcement);
  absl::Status Flush(const UpdatePlace& place);
  absl::Status Repost(uint64_t slot);
  absl::Status ReportCredits();
  absl::Status Report();

  P& pmem_;
  const Options options_;
  fabric::Fabric& fabric_;
  const fabric::ConnectionId connection_;
  std::vector<Step> program_;
  const bool is_message_log_;

  size_t at_ = 0;          // index in program_: a receive
  uint64_t sequence_ = 0;  // number of the last message with bytes
  uint64_t acks_ = 0;
  uint64_t receives_ = 0;  // posted again
  uint64_t reported_ = 0;  // of these, said so
  bool owes_report_ = false;
  uint64_t wake_ups_ = 0;
  uint64_t reports_sent_ = 0;
  std::deque<Announcement> unapplied_;
  std::optional<MessageLog<P>> log_;
  std::unique_ptr<MessageSlots> dram_;
  std::unique_ptr<MessageSlots> reports_;
  std::vector<size_t> free_reports_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_RESPONDER_H_
