// SPDX-License-Identifier: Apache-2.0
// inquiry: questions to a node, one at a time, and their replies.
//
// Idea: a connection of its own, proofs of the cluster's key if there is one, a
// request that needs no promise (View, Follow, Release), its reply, and perhaps
// the next request. The connection lives as long as the inquiry, so that keys
// in a reply can be used.
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
    NodeId node;  // node that must answer there (P-H17)
    Hello hello;
    Deadline deadline;  // for the connection
    Credentials credentials = {};
  };

  // Starts to connect; errors show in status(). The fabric must outlive the
  // inquiry.
  Inquiry(Fabric& fabric, Options options, Message request);
  // Closes the connection.
  ~Inquiry();
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // Takes what the fabric brought. Returns false for any other connection. A
  // caller that posts reads on connection() checks their completions
  // afterwards.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // Sends the next question; reply() is empty until it is answered. Requires:
  // may_ask(). Errors show in status().
  void Ask(const Message& request);
  // Returns true if the last question was answered and its bytes are free.
  bool may_ask() const {
    return status_.ok() && reply_.has_value() && sends_under_way_ == 0;
  }

  bool done() const { return !status_.ok() || reply_.has_value(); }
  // Returns the status. Errors: Unavailable (nobody answers, the connection
  // broke); NotFound (the node has no replica of the log); FailedPrecondition
  // (another node, or one of another cluster, answers at this address);
  // Unauthenticated (it has another key); DataLoss (an impossible message); the
  // node's own (Failed).
  const absl::Status& status() const { return status_; }
  // Returns true if a node answered, whatever it said.
  bool was_answered() const { return was_answered_; }
  // Returns the Welcome of a node that answered.
  const std::optional<Welcome>& welcome() const { return welcome_; }
  const std::optional<Message>& reply() const { return reply_; }
  // Returns true if the node has proved the key, if there is one: the Welcome
  // is then its own.
  bool is_proved() const { return slots_ != nullptr && step_ == Step::kAsk; }
  ConnectionId connection() const { return connection_; }

  // Ends the inquiry with `why`.
  void Fail(const absl::Status& why);

 private:
  absl::Status Established(const std::string& private_data);
  // Steps of the exchange; the caller's request is the last.
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
  bool is_asked_ = false;  // a reply is awaited
  std::optional<Welcome> welcome_;
  std::optional<Message> reply_;
  uint32_t sends_under_way_ = 0;
  std::unique_ptr<MessageSlots> slots_;  // request, reply
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_PROTOCOL_INQUIRY_H_
