// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/writers/fed_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::demo {
namespace {

constexpr size_t kPendingBytes = 64 << 10;
// Begins the last line of a writer that ends well.
constexpr absl::string_view kDurable = "durable ";

timespec TimespecOf(int64_t nanos) {
  constexpr int64_t kSecond = 1'000'000'000;
  nanos = std::max<int64_t>(nanos, 0);
  return {nanos / kSecond, nanos % kSecond};
}

}  // namespace

FedWriter::FedWriter(ChildProcess* child, const Feed* feed,
                     uint64_t first_number, const FeedLimits& limits,
                     const Clock& clock)
    : child_(*child),
      feed_(*feed),
      clock_(clock),
      first_number_(first_number),
      limits_(limits),
      last_ack_nanos_(clock.NowNanos()) {
  for (const int fd : {child_.input().get(), child_.output().get()}) {
    // A smaller pipe only makes the writer wait more often for its feeder.
    (void)fcntl(fd, F_SETPIPE_SZ, kPipeBytesMax);
  }
}

void FedWriter::FillInput() {
  do {
    FillPending();
  } while (FeedSome());
}

bool FedWriter::ListenAndFeed(int64_t timeout_nanos) {
  FillPending();
  const int input = pending_.empty() ? -1 : child_.input().get();
  std::array<pollfd, 3> fds = {{{child_.output().get(), POLLIN, 0},
                                {child_.error().get(), POLLIN, 0},
                                {input, POLLOUT, 0}}};
  const timespec wait = TimespecOf(timeout_nanos);
  if (ppoll(fds.data(), fds.size(), &wait, nullptr) <= 0) return true;
  if (fds[1].revents != 0 && !ReadSome(fds[1].fd, &said_)) {
    child_.error().Close();
  }
  if (fds[2].revents != 0) FeedSome();
  return fds[0].revents == 0 || ReadSome(fds[0].fd, &heard_);
}

void FedWriter::EndInput() {
  ends_input_ = true;
  const bool is_split = fed_bytes_ > whole_bytes_;
  pending_.resize(is_split ? unfed_ends_.front() - fed_bytes_ : 0);
  if (pending_.empty()) child_.input().Close();
}

void FedWriter::FillPending() {
  while (!ends_input_ && !is_paused_ && pending_.size() < kPendingBytes &&
         made_ring_bytes_ < limits_.ring_bytes_max &&
         UnsettledCount() < limits_.unacknowledged_max) {
    const std::string record = feed_.Record(first_number_ + made_count_);
    pending_.append(record);
    pending_.push_back('\n');
    made_bytes_ += record.size() + 1;
    made_ring_bytes_ += RecordBytes(record.size());
    ++made_count_;
    unfed_ends_.push_back(made_bytes_);
  }
}

uint64_t FedWriter::UnsettledCount() const {
  return made_count_ - settled_count_ - acknowledged_beyond_;
}

void FedWriter::Settle(uint64_t count) {
  settled_count_ = std::clamp(count, settled_count_, made_count_);
  acknowledged_beyond_ = static_cast<uint64_t>(std::count_if(
      acknowledgements_.begin(), acknowledgements_.end(),
      [this](const Acknowledgement& ack) {
        return ack.record.number >= first_number_ + settled_count_;
      }));
}

bool FedWriter::FeedSome() {
  if (pending_.empty()) return false;
  const ssize_t written =
      write(child_.input().get(), pending_.data(), pending_.size());
  if (written <= 0) {
    // The writer has ended; its exit status says why.
    if (errno != EAGAIN && errno != EINTR) StopFeeding();
    return false;
  }
  fed_bytes_ += static_cast<uint64_t>(written);
  pending_.erase(0, static_cast<size_t>(written));
  while (!unfed_ends_.empty() && unfed_ends_.front() <= fed_bytes_) {
    whole_bytes_ = unfed_ends_.front();
    unfed_ends_.pop_front();
    ++fed_count_;
  }
  if (ends_input_ && pending_.empty()) child_.input().Close();
  return true;
}

void FedWriter::StopFeeding() {
  ends_input_ = true;
  pending_.clear();
  child_.input().Close();
}

void FedWriter::ReadUntilNow() {
  int standing_bytes = 0;
  const bool is_known =
      ioctl(child_.output().get(), FIONREAD, &standing_bytes) == 0;
  ALPHEUS_CHECK(is_known, "a pipe of ours tells how much stands in it");
  const size_t end = heard_.size() + static_cast<size_t>(standing_bytes);
  while (heard_.size() < end && ReadSome(child_.output().get(), &heard_)) {
  }
}

void FedWriter::DrainAfterDeath() {
  while (ReadSome(child_.output().get(), &heard_)) {
  }
  while (child_.error().is_open() && ReadSome(child_.error().get(), &said_)) {
  }
}

absl::Status FedWriter::ReadAcknowledgements() {
  size_t begin = 0;
  for (;;) {
    const size_t end = heard_.find('\n', begin);
    if (end == std::string::npos) break;
    ALPHEUS_RETURN_IF_ERROR(TakeLine(heard_.substr(begin, end - begin)));
    begin = end + 1;
  }
  heard_.erase(0, begin);
  return absl::OkStatus();
}

absl::Status FedWriter::TakeLine(const std::string& line) {
  uint64_t durable = 0;
  if (absl::StartsWith(line, kDurable) &&
      absl::SimpleAtoi(line.substr(kDurable.size()), &durable)) {
    durable_lsn_ = durable;
    return absl::OkStatus();
  }
  unsigned long long lsn = 0;
  unsigned long long index = 0;
  unsigned long long thread = 0;
  int used = 0;
  if (std::sscanf(line.c_str(), "%llu %llu %llu%n", &lsn, &index, &thread,
                  &used) != 3 ||
      static_cast<size_t>(used) != line.size()) {
    return absl::DataLossError(
        absl::StrCat("'", line, "' is no acknowledgement"));
  }
  acknowledgements_.push_back({{lsn, first_number_ + index}, thread});
  if (index >= settled_count_) ++acknowledged_beyond_;
  last_ack_nanos_ = clock_.NowNanos();
  return absl::OkStatus();
}

}  // namespace alpheus::demo
