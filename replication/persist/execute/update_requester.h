// SPDX-License-Identifier: Apache-2.0
// update_requester: runs the requester's steps of any row of the tables, one
// update after the other, on one connection.
//
// Idea: the object is a program counter over the row's steps. Post begins an
// update and advances until a step waits for a completion or an ack; Take hands
// in events and continues from there. Nothing blocks.
// No log uses this: its records go by persist_requester.h, which has many
// updates in flight. Clients of a node's memory do (api/remote), and the tests
// and the benchmark of REMOTELOG run all 72 rows.
//
// Invariants:
//   UQ1. persisted() counts an update only when the row's last step is done.
//   UQ2. A step is posted only when the steps before it are done, waits
//        included.
//   UQ3. Writes with immediate, and sends, whose credit is not back never
//        exceed the responder's receives (P-R1).
// After an error the connection is of no more use, and it is unknown whether
// the update is persistent.
// Thread safety: one thread.
// References: method.h; remote persistence taxonomy §3.2, §3.3.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_REQUESTER_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_REQUESTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/method.h"
#include "replication/wire/ack.h"
#include "replication/wire/message_slots.h"

namespace alpheus::replication {

class UpdateRequester {
 public:
  struct Options {
    SessionId session;     // not 0
    uint32_t credits = 0;  // the responder's posted receives, at least 2
    uint64_t message_bytes_max = 0;  // bytes that fit into one of them
    // Place of these receives if they are in persistent memory: a FLUSH after a
    // send names it.
    fabric::RemoteAddress buffers = {};
    uint64_t buffers_bytes = 0;
  };
  // A part of an update: bytes here, and their place in the responder's region,
  // which has one registration.
  struct Part {
    fabric::LocalBytes from;
    fabric::RemoteAddress to;
  };
  struct Update {
    Part a;
    Part b = {};  // for a compound update
    // The bytes of a are there, by an atomic of this connection that has
    // completed: only what follows a WRITE is done. `a.from` says how many they
    // are, and is not read. For a singleton's row of WRITE.
    bool is_there = false;
  };

  // Starts, and posts the receives for acks, before or after the connection is
  // established. `steps` must outlive the object. Errors: Unimplemented (an
  // atomic WRITE, and the adapter has none); the fabric's.
  static absl::StatusOr<std::unique_ptr<UpdateRequester>> Start(
      std::span<const Step> steps, const Options& options,
      fabric::Fabric& fabric, fabric::ConnectionId connection);

  // Returns true for a step that is left out of an update whose bytes are
  // there.
  static bool IsOfWrite(const Step& step) {
    return step.action == StepAction::kRequesterWrite ||
           step.action == StepAction::kRequesterCompleteWrite;
  }

  // Returns true if the last update is persisted and all its operations have
  // completed.
  bool CanPost() const {
    return persisted_ == posted_ && completed_ == operations_;
  }
  // Posts an update. Requires: CanPost(); the bytes do not change until it is
  // true again. Errors: InvalidArgument, with nothing posted (a is empty; b is
  // there and the row is a singleton's, or the reverse; too long for a message;
  // not on multiples of 8 for an immediate or an atomic WRITE; is_there, and
  // the row is none of WRITE); the fabric's.
  absl::Status Post(const Update& update);

  // Takes one completion of what this object has posted. Others may post reads
  // and atomics on the connection, and keep their completions. Errors:
  // Unavailable (the connection broke), DataLoss (the message is no report),
  // the fabric's.
  absl::Status OnCompletion(const fabric::Completion& completion);

  uint64_t posted() const { return posted_; }
  uint64_t persisted() const { return persisted_; }

 private:
  UpdateRequester(std::span<const Step> steps, const Options& options,
                  fabric::Fabric& fabric, fabric::ConnectionId connection);

  bool HasAction(StepAction action) const;
  absl::Status Check(const Update& update) const;
  absl::Status Advance();
  bool IsOver(const Step& wait) const;
  bool HasCreditFor(StepAction action) const;
  absl::Status PostStep(const Step& step);
  absl::Status PostSend(const Step& step);
  absl::Status PostFlush();
  const Part& PartOf(UpdatePart part) const {
    return part == UpdatePart::kB ? update_.b : update_.a;
  }
  absl::Status PostReceive(uint64_t slot);
  absl::Status OnReport(const fabric::Completion& completion);

  const std::span<const Step> steps_;
  const Options options_;
  fabric::Fabric& fabric_;
  const fabric::ConnectionId connection_;

  Update update_;
  size_t at_ = 0;  // index in steps_; their end: no update runs
  std::vector<uint64_t> posted_as_;  // number of each step's operation
  uint64_t posted_ = 0;
  uint64_t persisted_ = 0;
  uint64_t operations_ = 0;  // posted in all; they complete in order (FB3)
  uint64_t completed_ = 0;
  uint64_t announced_ = 0;  // operations that used a receive
  uint64_t receives_ = 0;   // receives of these given back
  uint64_t acks_ = 0;
  std::unique_ptr<MessageSlots> reports_;
  std::unique_ptr<MessageSlots> messages_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_REQUESTER_H_
