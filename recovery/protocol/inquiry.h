// SPDX-License-Identifier: Apache-2.0
// inquiry: questions to a node, one at a time, and their replies.
//
// Idea: a connection of its own, the proofs of the cluster's key if there is
// one, a request that needs no promise (View, Follow, Release), a reply, and
// perhaps the next request. The connection stays until the inquiry goes, so
// that what a reply gave out can be used.
//
// Thread safety: one thread.
// References: protocol P-H17; messages.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_INQUIRY_H_
#define ALPHEUS_RECOVERY_PROTOCOL_INQUIRY_H_

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

namespace alpheus {

class Inquiry {
 public:
  struct Options {
    std::string address;
    NodeId node;  // that is to answer there (P-H17)
    Hello hello;
    Deadline deadline;  // until the connection must be there
    Credentials credentials = {};
  };

  // Starts to connect; errors show in status(). The fabric must outlive it.
  Inquiry(Fabric& fabric, Options options, Message request);
  // Closes the connection.
  ~Inquiry();
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // False if it is of another connection. Whoever posts reads on connection()
  // looks at their completions afterwards.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // The next question; reply() has nothing until it is answered. Requires:
  // may_ask(). Errors show in status().
  void Ask(const Message& request);
  // The last one was answered, and its bytes are free.
  bool may_ask() const {
    return status_.ok() && reply_.has_value() && sends_under_way_ == 0;
  }

  bool done() const { return !status_.ok() || reply_.has_value(); }
  // Errors: Unavailable (nobody is there, the connection broke); NotFound (the
  // node has no replica of the log); FailedPrecondition (another node answers
  // at this address, or one of another cluster); Unauthenticated (it has
  // another key); DataLoss (what no node says); what the node says (Failed).
  const absl::Status& status() const { return status_; }
  // A node is there, whatever it said.
  bool was_answered() const { return was_answered_; }
  // Of a node that answered.
  const std::optional<Welcome>& welcome() const { return welcome_; }
  const std::optional<Message>& reply() const { return reply_; }
  // The node has proved the key, if there is one: its welcome is its own.
  bool is_proved() const { return slots_ != nullptr && step_ == Step::kAsk; }
  ConnectionId connection() const { return connection_; }

  // The node, or the connection, is of no more use.
  void Fail(const absl::Status& why);

 private:
  absl::Status Established(const std::string& private_data);
  // The request under way: the one that was asked for comes last.
  enum class Step { kChallenge, kProve, kAsk };

  absl::Status Send(Step step, const Message& message);
  static absl::Status OfConnection(const absl::Status& posted);
  absl::Status TakeReply(std::span<const std::byte> bytes);
  absl::Status TakeReply(Message reply);
  void Expect(const absl::Status& step);

  Fabric& fabric_;
  const Options options_;
  const Message request_;
  ConnectionId connection_;
  absl::Status status_;
  PrimaryHandshake handshake_;
  Step step_ = Step::kAsk;
  bool was_answered_ = false;
  bool is_asked_ = false;  // and its reply has not come
  std::optional<Welcome> welcome_;
  std::optional<Message> reply_;
  uint32_t sends_under_way_ = 0;
  std::unique_ptr<MessageSlots> slots_;  // request, reply
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_PROTOCOL_INQUIRY_H_
