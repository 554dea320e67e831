// SPDX-License-Identifier: Apache-2.0
// message_writer: writes a node's messages to standard error, line by line, and
// never waits for the reader.
//
// Idea: a pipe whose reader stands still, a stopped terminal or a hanging disk
// would block the one thread that serves replicas. So lines go into a queue,
// and a thread of its own writes them. If no thread can be started, lines are
// written where that does not block, and dropped otherwise.
//
//   2026-11-27T05:39:13.123Z alpheusd: node 1 listens on 10.0.0.1:7401
//
// As JSON, for programs that collect messages:
//
//   {"time":"2026-11-27T05:39:13.123Z","program":"alpheusd","node":1,
//    "message":"node 1 listens on 10.0.0.1:7401"}
//
// Invariants:
//   DML1. Write never waits for the descriptor, and takes bounded memory. Lines
//         that don't fit into the queue are dropped and counted; the next line
//         that gets through names their number.
//   DML2. A line is one event: line ends inside it become spaces.
// Thread safety: Write by any thread.
#ifndef ALPHEUS_TOOLS_DAEMON_MESSAGE_WRITER_H_
#define ALPHEUS_TOOLS_DAEMON_MESSAGE_WRITER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace alpheus::daemon {

enum class MessageFormat { kText, kJson };

class MessageWriter {
 public:
  static constexpr size_t kQueueBytesMax = size_t{1} << 20;

  // Writes to a copy of `fd`, so that the caller may close its own; each line
  // names the program, and as JSON the node, too.
  MessageWriter(int fd, std::string_view program,
                MessageFormat format = MessageFormat::kText, uint64_t node = 0);
  // Waits a little for the queue, then leaves it.
  ~MessageWriter();
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;

  void Write(std::string_view sentence);
  // Returns the number of lines dropped since the start.
  uint64_t dropped() const;

 private:
  struct Queue;
  // The thread may outlive this, in a write that never ends.
  const std::shared_ptr<Queue> queue_;
};

// Returns the time in UTC, to the millisecond: "2026-11-27T05:39:13.123Z".
std::string FormatTime(std::chrono::system_clock::time_point time);

}  // namespace alpheus::daemon

#endif  // ALPHEUS_TOOLS_DAEMON_MESSAGE_WRITER_H_
