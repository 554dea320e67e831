// SPDX-License-Identifier: Apache-2.0
// update_responder: runs the responder's steps of any of the tables' rows.
//
// Idea: a program counter over the row's steps of this side. A receive, of a
// message or of an immediate, lets it go on until the next receive: copies,
// flushes, the ack. Rows without such steps still take receives up; those are
// posted again, and where the row sends, only when their message was applied
// (message_log.h). ApplyReceived does that: when is the caller's business, as
// recovery applies what it was not called for.
//
// Invariants:
//   UR1. An ack is sent only behind the steps before it (P-INV-15).
//   UR2. A receive is posted again only when its message is copied, persistent
//        and counted (P-R5), or has no bytes that matter.
//   UR3. Only messages of this session, whole and in turn, are taken; places
//        outside the region are refused.
// Crash states: those of MessageLog; and of what was not acknowledged any part
// may be there, b never without a.
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

namespace alpheus {

template <Persistence P>
class UpdateResponder {
 public:
  struct Options {
    SessionId session;               // not 0
    uint32_t credits = 0;            // receives, 2 at least
    uint64_t message_bytes_max = 0;  // each takes; a multiple of a line
    std::span<std::byte> region;     // where updates belong
    // Receive buffers in persistent memory, of MessageLog's AreaBytes; empty:
    // they are DRAM. A requester that flushes has to reach them: kRead.
    LocalBytes buffers = {};
  };

  // Posts the receives, so that it is to be called before the connection is
  // accepted. `steps` and `pmem` outlive it. Requires: ApplyMessages was called
  // for the buffers. Errors: FailedPrecondition (messages are the log, and the
  // buffers are DRAM); the medium's; the fabric's.
  static absl::StatusOr<std::unique_ptr<UpdateResponder>> Start(
      P& pmem, std::span<const Step> steps, const Options& options,
      Fabric& fabric, ConnectionId connection);

  // One completion of the connection, which nobody else posts on. After an
  // error it is of no more use. Errors: Unavailable (the connection broke),
  // DataLoss (what came can't be), the medium's, the fabric's.
  absl::Status Take(const Completion& completion);

  // Applies what messages left to be applied, and gives their credits back.
  // Errors: the medium's, the fabric's.
  absl::Status ApplyReceived();

  // Messages that the buffers hold and nobody applied.
  size_t unapplied() const { return unapplied_.size(); }
  // How often the program was woken by something to do for the plan.
  uint64_t wake_ups() const { return wake_ups_; }
  // Reports, acks and others.
  uint64_t reports() const { return reports_sent_; }

 private:
  // What a receive brought.
  struct Told {
    uint64_t slot = 0;
    bool is_address = false;
    UpdateMessage message = {};  // of an address: where the bytes are
  };

  UpdateResponder(P& pmem, std::span<const Step> steps, const Options& options,
                  Fabric& fabric, ConnectionId connection);

  LocalBytes Buffer(uint64_t slot) const;
  absl::StatusOr<Told> Read(const Completion& completion);
  absl::StatusOr<Told> ReadMessage(const Completion& completion);
  absl::Status Run(const Told& told);
  absl::Status Perform(const Step& step, const Told& told);
  absl::Status Flush(const UpdatePlace& place);
  absl::Status Repost(uint64_t slot);
  absl::Status ReportCredits();
  absl::Status Report();

  P& pmem_;
  const Options options_;
  Fabric& fabric_;
  const ConnectionId connection_;
  std::vector<Step> program_;
  const bool is_message_log_;

  size_t at_ = 0;          // of program_: a receive
  uint64_t sequence_ = 0;  // of the last message with bytes
  uint64_t acks_ = 0;
  uint64_t receives_ = 0;  // posted again
  uint64_t reported_ = 0;  // of these, said so
  bool owes_report_ = false;
  uint64_t wake_ups_ = 0;
  uint64_t reports_sent_ = 0;
  std::deque<Told> unapplied_;
  std::optional<MessageLog<P>> log_;
  std::unique_ptr<MessageSlots> dram_;
  std::unique_ptr<MessageSlots> reports_;
  std::vector<size_t> free_reports_;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_RESPONDER_H_
