// SPDX-License-Identifier: Apache-2.0
// standard_streams: reading standard input and writing standard output with
// every error seen.
//
// Idea: stdio hides errors until exit and C++ streams hide their cause. A tool
// whose output is a user's data must report both. So bytes go through read(2)
// and write(2) with buffers of its own.
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

// Ensures that descriptors 0 to 2 are taken, so that a region opened later
// never becomes "standard output", and that a closed pipe is an error of
// write(2) instead of a signal.
void GuardStandardStreams();

// Writes one line on standard error, for a person: "alpheus: ", the sentence.
// May be called by many threads.
void SayOnStandardError(const std::string& sentence);

inline constexpr char kStandardOutput[] = "standard output";

// Writes all of `bytes`, with one write(2) unless the kernel takes less. `name`
// is for messages. Errors: Cancelled (reader gone); ResourceExhausted (file
// system full); FailedPrecondition (closed, or another system error).
absl::Status WriteAll(int fd, std::string_view bytes,
                      const std::string& name = kStandardOutput);

// Standard output, buffered. Unflushed bytes are lost.
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
  // Reads `fd`; stops waiting for input when `stop_fd` (-1: none) becomes
  // readable.
  explicit Input(int fd, int stop_fd = -1);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Returns the bytes not consumed yet, read as needed; empty only at the end
  // of input.
  // Errors: FailedPrecondition (system error, with position); Cancelled
  // (stopped).
  absl::StatusOr<std::string_view> Peek();

  // Consumes `bytes`. Requires: at most what Peek returned.
  void Consume(size_t bytes);

  // Returns the number of bytes consumed.
  uint64_t position() const { return position_; }

 private:
  bool IsStopped() const;  // waits until stopped or readable

  const int fd_;
  const int stop_fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t position_ = 0;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_STANDARD_STREAMS_H_
