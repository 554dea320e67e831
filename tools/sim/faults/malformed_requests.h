// SPDX-License-Identifier: Apache-2.0
// malformed_requests: messages of a peer that does not know the protocol, or
// breaks it: bytes that are no hello and no message, or nearly one, and keys of
// regions that nobody issued.
//
// Thread safety: one thread.
// References: protocol P-H17; messages.h, fabric.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_MALFORMED_REQUESTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_MALFORMED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/message_slots.h"

namespace alpheus::sim {

// Draws at most `bytes_max` bytes: random ones; or `good` with changed bits,
// words or length.
std::vector<std::byte> DrawMalformed(RandomSource& random,
                                     std::span<const std::byte> good,
                                     size_t bytes_max);

// Replaces the last bytes by a checksum that holds for `log_id`, to reach the
// checks behind it. Requires: a message in `good`.
std::vector<std::byte> WithSum(std::span<const std::byte> bytes,
                               std::span<const std::byte> good, Uuid log_id);

// Use of one connection.
struct MalformedCall {
  std::string address;
  std::string hello;  // private data
  Uuid log_id;        // named in the hello
  Deadline deadline;  // of connecting
  // Messages, each sent after the reply to the one before.
  std::vector<std::vector<std::byte>> messages;
  // Key for a write and a read of a region, before the messages.
  std::optional<fabric::RegionKey> guessed_key;
  // Sends an immediate without bytes first, which needs no key.
  bool has_immediate = false;
};

class MalformedConversation {
 public:
  // Starts to connect. The fabric must outlive it.
  MalformedConversation(fabric::Fabric& fabric, MalformedCall call);
  // Closes the connection.
  ~MalformedConversation();
  MalformedConversation(const MalformedConversation&) = delete;
  MalformedConversation& operator=(const MalformedConversation&) = delete;

  // Takes an event. Returns false if it belongs to another connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  bool done() const { return is_done_; }
  // Returns the refusal, by a rejection or by the node's last message; OK:
  // nothing was refused.
  const absl::Status& refusal() const { return refusal_; }
  // Returns what it must not get: a reply other than Challenged and Failed,
  // bytes of a region. Empty: nothing.
  const std::string& got() const { return got_; }
  // Returns the number of operations by a guessed key that did nothing.
  int operations_refused() const { return operations_refused_; }

 private:
  void Begin();
  void SendNext();
  void OnReply(size_t bytes);
  void Expect(const absl::Status& step);

  fabric::Fabric& fabric_;
  const MalformedCall call_;
  std::unique_ptr<replication::MessageSlots> slots_;  // messages and replies
  fabric::ConnectionId connection_;
  size_t next_ = 0;  // of the messages
  bool is_done_ = false;
  absl::Status refusal_;
  std::string got_;
  int operations_refused_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_MALFORMED_REQUESTS_H_
