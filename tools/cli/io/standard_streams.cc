// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::cli {
namespace {

// A few system calls per megabyte, and small enough for the cache.
constexpr size_t kBufferBytes = 256 << 10;

absl::Status WriteError(const std::string& name, int error) {
  const std::string what =
      absl::StrCat(name, ": write failed: ", std::strerror(error));
  switch (error) {
    case EPIPE:
      return absl::CancelledError(
          absl::StrCat(what,
                       ": the reader of the output has ended; what was written "
                       "so far is valid"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "; free space and run the command again"));
    default:
      return absl::FailedPreconditionError(
          absl::StrCat(what, name == kStandardOutput
                                 ? "; give the command an open standard output"
                                 : "; see the kernel's log"));
  }
}

}  // namespace

void GuardStandardStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() takes the lowest free descriptor, which is `fd`. Opened for the
    // wrong direction, so that using it still fails; only messages may vanish.
    const int flags = fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY;
    if (open("/dev/null", flags) != fd) _exit(1);
  }
}

void SayOnStandardError(const std::string& sentence) {
  std::fprintf(stderr, "alpheus: %s\n", sentence.c_str());
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return WriteError(name, errno);
    }
  }
  return absl::OkStatus();
}

absl::Status Output::Write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    ALPHEUS_RETURN_IF_ERROR(Flush());
  }
  if (bytes.size() >= kBufferBytes) return WriteAll(fd_, bytes);
  buffer_.append(bytes);
  return absl::OkStatus();
}

absl::Status Output::Flush() {
  const std::string bytes = std::move(buffer_);
  buffer_.clear();
  return WriteAll(fd_, bytes);
}

Input::Input(int fd, int stop_fd)
    : fd_(fd), stop_fd_(stop_fd), buffer_(kBufferBytes) {}

bool Input::IsStopped() const {
  if (stop_fd_ < 0) return false;
  std::array<pollfd, 2> fds = {{{stop_fd_, POLLIN, 0}, {fd_, POLLIN, 0}}};
  while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  return fds[0].revents != 0;
}

absl::StatusOr<std::string_view> Input::Peek() {
  while (begin_ == end_) {
    if (IsStopped()) {
      return absl::CancelledError(absl::StrCat(
          "standard input: not read any further than byte ", position_));
    }
    const ssize_t got = read(fd_, buffer_.data(), buffer_.size());
    if (got == 0) return std::string_view();
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    } else if (errno != EINTR) {
      return absl::FailedPreconditionError(
          absl::StrCat("standard input: read failed at byte ", position_, ": ",
                       std::strerror(errno),
                       "; give the command a readable standard input"));
    }
  }
  return std::string_view(buffer_.data() + begin_, end_ - begin_);
}

void Input::Consume(size_t bytes) {
  begin_ += bytes;
  position_ += bytes;
}

}  // namespace alpheus::cli
