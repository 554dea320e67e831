// SPDX-License-Identifier: Apache-2.0
// nonsense: what somebody says who does not know the protocol, or knows it and
// breaks it: bytes that are no hello and no message, or nearly one, and keys of
// regions that nobody gave out.
//
// Thread safety: one thread.
// References: protocol P-H17; messages.h, fabric.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_NONSENSE_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_NONSENSE_H_

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

// At most `bytes_max` bytes, by lot: others, of any number; or `good` with
// bits, words or its length changed.
std::vector<std::byte> DrawNonsense(RandomSource& random,
                                    std::span<const std::byte> good,
                                    size_t bytes_max);

// The same with a sum that holds for `log_id`, in place of its last bytes: so
// that nonsense is reached that lies behind it. Requires: a message in `good`.
std::vector<std::byte> WithSum(std::span<const std::byte> bytes,
                               std::span<const std::byte> good, Uuid log_id);

// What is done with one connection.
struct NonsenseCall {
  std::string address;
  std::string hello;  // private data
  Uuid log_id;        // that it names
  Deadline deadline;  // until it is there
  // One after the other, each when the one before was replied to.
  std::vector<std::vector<std::byte>> messages;
  // Before them: a write and a read of a region by this key.
  std::optional<RegionKey> guessed_key;
  // Before them: an immediate without bytes, which needs no key.
  bool has_immediate = false;
};

class NonsenseTalk {
 public:
  // Starts to connect. The fabric must outlive it.
  NonsenseTalk(Fabric& fabric, NonsenseCall call);
  // Closes the connection.
  ~NonsenseTalk();
  NonsenseTalk(const NonsenseTalk&) = delete;
  NonsenseTalk& operator=(const NonsenseTalk&) = delete;

  // False if it is of another connection.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  bool done() const { return is_done_; }
  // By a rejection, or by the last message of the node; OK: by nothing that was
  // said.
  const absl::Status& refusal() const { return refusal_; }
  // What it should not have got: a reply but Challenged and Failed, bytes of a
  // region. Empty: nothing.
  const std::string& got() const { return got_; }
  // Of a guessed key, that did nothing.
  int operations_refused() const { return operations_refused_; }

 private:
  void Begin();
  void SendNext();
  void TakeReply(size_t bytes);
  void Expect(const absl::Status& step);

  Fabric& fabric_;
  const NonsenseCall call_;
  std::unique_ptr<MessageSlots> slots_;  // what is sent, what is replied
  ConnectionId connection_;
  size_t next_ = 0;  // of the messages
  bool is_done_ = false;
  absl::Status refusal_;
  std::string got_;
  int operations_refused_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_NONSENSE_H_
