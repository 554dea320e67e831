// SPDX-License-Identifier: Apache-2.0
// control_call: questions to a node, one at a time, and their replies.
//
// Idea: a control call has a connection of its own. It proves the cluster's key
// if there is one, sends a request that needs no promise (such as View, Follow
// or Release), takes the reply, and may then send the next request. The
// connection lives as long as the object, so that keys in a reply can be used.
//
// Thread safety: one thread.
// References: protocol P-H17; messages.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_CONTROL_CALL_H_
#define ALPHEUS_RECOVERY_PROTOCOL_CONTROL_CALL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/message_slots.h"

namespace alpheus::recovery {

class ControlCall {
 public:
  struct Options {
    std::string address;
    NodeId node;  // node that must answer there (P-H17)
    Hello hello;
    Deadline deadline;  // for the connection
    Credentials credentials = {};
  };

  // Starts to connect; errors show in status(). The fabric must outlive the
  // control call.
  ControlCall(fabric::Fabric& fabric, Options options, Message request);
  // Closes the connection.
  ~ControlCall();
  ControlCall(const ControlCall&) = delete;
  ControlCall& operator=(const ControlCall&) = delete;

  // Takes what the fabric brought. Returns false for any other connection. A
  // caller that posts reads on connection() checks their completions
  // afterwards.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Sends the next question; reply() is empty until it is answered. Requires:
  // may_ask(). Errors show in status().
  void Ask(const Message& request);
  // Returns true if the last question was answered and its bytes are free.
  bool may_ask() const {
    return status_.ok() && reply_.has_value() && sends_in_flight_ == 0;
  }

  bool done() const { return !status_.ok() || reply_.has_value(); }
  // Returns the status. Errors: Unavailable (nobody answers, the connection
  // broke); NotFound (the node has no replica of the log, or one that is marked
  // as deleted: DeletionBy of deletion.h); FailedPrecondition
  // (another node, or one of another cluster, answers at this address);
  // Unauthenticated (it has another key); DataLoss (an impossible message); the
  // node's own (Failed).
  const absl::Status& status() const { return status_; }
  // Returns true if a node answered, whatever it said.
  bool was_answered() const { return was_answered_; }
  // Returns the ServerHello of a node that answered.
  const std::optional<ServerHello>& server_hello() const {
    return server_hello_;
  }
  const std::optional<Message>& reply() const { return reply_; }
  // Returns true if the node has proved the key, if there is one: the
  // ServerHello is then its own.
  bool is_proved() const { return slots_ != nullptr && step_ == Step::kAsk; }
  fabric::ConnectionId connection() const { return connection_; }

  // Ends the control call with `why`.
  void Fail(const absl::Status& why);

 private:
  absl::Status Established(const fabric::ConnectionEvent& event);
  // Steps of the exchange; the caller's request is the last.
  enum class Step { kChallenge, kProve, kAsk };

  absl::Status Send(Step step, const Message& message);
  static absl::Status OfConnection(const absl::Status& posted);
  absl::Status OnReply(std::span<const std::byte> bytes);
  absl::Status OnReply(Message reply);
  void Expect(const absl::Status& step);

  fabric::Fabric& fabric_;
  const Options options_;
  const Message request_;
  fabric::ConnectionId connection_;
  absl::Status status_;
  PrimaryHandshake handshake_;
  Step step_ = Step::kAsk;
  bool was_answered_ = false;
  bool is_asked_ = false;       // a reply is awaited
  bool asks_deletion_ = false;  // the last question is AskDeletion
  std::optional<ServerHello> server_hello_;
  std::optional<Message> reply_;
  uint32_t sends_in_flight_ = 0;
  std::unique_ptr<replication::MessageSlots> slots_;  // request, reply
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_CONTROL_CALL_H_
