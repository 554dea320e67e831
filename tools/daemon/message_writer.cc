// SPDX-License-Identifier: Apache-2.0
#include "tools/daemon/message_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/pmem/file_descriptor.h"
#include "tools/cli/io/json_output.h"

namespace alpheus::daemon {
namespace {

// A reader that still reads takes the rest in this time.
constexpr std::chrono::milliseconds kLastWordsTime(500);

// There is nowhere to report a failure.
void WriteLine(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(fd, line.data(), line.size());
    if (written < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      (void)poll(&ready, 1, -1);
    } else if (written < 0 && errno != EINTR) {
      return;
    } else if (written > 0) {
      line.remove_prefix(static_cast<size_t>(written));
    }
  }
}

}  // namespace

std::string FormatTime(std::chrono::system_clock::time_point time) {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(
                          time.time_since_epoch())
                          .count();
  const std::time_t seconds = static_cast<std::time_t>(millis / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return absl::StrFormat("%s.%03dZ", text.data(), millis % 1000);
}

struct MessageWriter::Queue {
  Queue(int descriptor, std::string_view name, MessageFormat line_format,
        uint64_t node_number)
      : copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)),
        fd(copy.get() >= 0 ? copy.get() : descriptor),
        program(name),
        format(line_format),
        node(node_number) {}

  std::string LineOf(std::string_view sentence) const {
    const std::string time = FormatTime(std::chrono::system_clock::now());
    std::string text(sentence);
    std::ranges::replace_if(
        text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    if (format == MessageFormat::kText) {
      return absl::StrCat(time, " ", program, ": ", text, "\n");
    }
    return cli::ToLine({{"time", time},
                        {"program", program},
                        {"node", node},
                        {"message", text}});
  }

  void Add(std::string_view sentence) {
    const std::scoped_lock lock(mutex);
    if (untold > 0 && bytes < kQueueBytesMax / 2) {
      const std::string lost =
          absl::StrCat(std::exchange(untold, 0),
                       " messages were dropped here: the reader of the "
                       "messages did not keep up");
      Push(LineOf(lost));
    }
    std::string line = LineOf(sentence);
    if (untold > 0 || bytes + line.size() > kQueueBytesMax) {
      ++untold;
      ++dropped;
      return;
    }
    Push(std::move(line));
  }

  void Push(std::string line) {
    bytes += line.size();
    lines.push_back(std::move(line));
    if (is_threaded) {
      changed.notify_all();
    } else {
      WriteWhatGoes();
    }
  }

  // Without a thread: as much as is taken at once.
  void WriteWhatGoes() {
    while (!lines.empty()) {
      pollfd ready{fd, POLLOUT, 0};
      if (poll(&ready, 1, 0) <= 0 || (ready.revents & POLLOUT) == 0) return;
      WriteLine(fd, lines.front());
      bytes -= lines.front().size();
      lines.pop_front();
    }
  }

  // The thread's.
  void Run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return is_over || !lines.empty(); });
      if (lines.empty()) return;
      const std::string line = std::move(lines.front());
      lines.pop_front();
      lock.unlock();
      WriteLine(fd, line);
      lock.lock();
      bytes -= line.size();
      changed.notify_all();
    }
  }

  // The thread may write when its maker has closed the descriptor it gave.
  const FileDescriptor copy;
  const int fd;  // where no copy could be had, the one that was given
  const std::string program;
  const MessageFormat format;
  const uint64_t node;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  size_t bytes = 0;  // of them, and of the one that is being written
  uint64_t untold = 0;
  uint64_t dropped = 0;
  bool is_threaded = false;
  bool is_over = false;
};

MessageWriter::MessageWriter(int fd, std::string_view program,
                             MessageFormat format, uint64_t node)
    : queue_(std::make_shared<Queue>(fd, program, format, node)) {
  // Signals are for others: a thread starts with the mask of its maker.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([queue = queue_] { queue->Run(); }).detach();
    queue_->is_threaded = true;
  } catch (const std::system_error&) {
    queue_->is_threaded = false;  // DML1: there may be none
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MessageWriter::~MessageWriter() {
  std::unique_lock lock(queue_->mutex);
  if (queue_->is_threaded) {
    queue_->changed.wait_for(lock, kLastWordsTime,
                             [this] { return queue_->bytes == 0; });
  }
  queue_->is_over = true;
  queue_->changed.notify_all();
}

void MessageWriter::Write(std::string_view sentence) { queue_->Add(sentence); }

uint64_t MessageWriter::dropped() const {
  const std::scoped_lock lock(queue_->mutex);
  return queue_->dropped;
}

}  // namespace alpheus::daemon
