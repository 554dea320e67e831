// SPDX-License-Identifier: Apache-2.0
// standard_streams: reading standard input and writing standard output with
// every error seen.
//
// Idea: stdio hides errors until exit and C++ streams hide their cause; a tool
// whose output is somebody's data must report both. So bytes go through
// read(2) and write(2) with buffers of our own.
//
// Thread safety: one thread per object; WriteAll may be called concurrently.
#ifndef ALPHEUS_TOOLS_CLI_IO_STANDARD_STREAMS_H_
#define ALPHEUS_TOOLS_CLI_IO_STANDARD_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::cli {

// Makes sure that descriptors 0 to 2 are taken, so that a region opened later
// never becomes "standard output", and that a closed pipe is an error of
// write(2) instead of a signal.
void GuardStandardStreams();

inline constexpr char kStandardOutput[] = "standard output";

// Writes all of `bytes`, with one write(2) unless the kernel takes less. `name`
// is for messages. Errors: Cancelled (reader gone); ResourceExhausted (file
// system full); FailedPrecondition (closed, or another system error).
absl::Status WriteAll(int fd, std::string_view bytes,
                      const std::string& name = kStandardOutput);

// Standard output, buffered. What is not flushed is lost.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  absl::Status Write(std::string_view bytes);
  absl::Status Flush();

 private:
  const int fd_;
  std::string buffer_;
};

// Standard input, buffered, with its position.
class Input {
 public:
  // When `stop_fd` (-1: none) becomes readable, nothing more is waited for.
  explicit Input(int fd, int stop_fd = -1);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Bytes not consumed yet, read as needed; empty only at the end of input.
  // Errors: FailedPrecondition (system error, with position); Cancelled
  // (stopped).
  absl::StatusOr<std::string_view> Peek();

  // Passes over `bytes`. Requires: not more than Peek gave.
  void Consume(size_t bytes);

  // Bytes consumed so far.
  uint64_t position() const { return position_; }

 private:
  bool IsStopped() const;  // waits until that is known, or a read won't block

  const int fd_;
  const int stop_fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t position_ = 0;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_STANDARD_STREAMS_H_
