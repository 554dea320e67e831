// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/victim.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::demo {
namespace {

constexpr size_t kPendingBytes = 64 << 10;
// What Linux lets an ordinary user have.
constexpr int kPipeBytes = 1 << 20;
constexpr int64_t kNanosPerSecond = 1'000'000'000;
// A victim that neither acknowledges nor dies for so long hangs. Generous: the
// machine may be busy with other things.
constexpr int64_t kSilenceNanosMax = 60 * kNanosPerSecond;

timespec TimespecOf(int64_t nanos) {
  nanos = std::max<int64_t>(nanos, 0);
  return {nanos / kNanosPerSecond, nanos % kNanosPerSecond};
}

}  // namespace

Victim::Victim(ChildProcess* child, const Feed* feed, uint64_t first_number,
               const KillPlan& plan, const Clock& clock)
    : child_(*child),
      feed_(*feed),
      clock_(clock),
      first_number_(first_number),
      plan_(plan) {
  for (const int fd : {child_.input().get(), child_.output().get()}) {
    // With a smaller pipe the kill comes less precisely, that is all.
    (void)fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
  }
}

absl::StatusOr<KillOutcome> Victim::RunUntilKilled() {
  const int64_t start_nanos = clock_.NowNanos();
  last_ack_nanos_ = start_nanos;
  if (plan_.ack_count == 0) kill_at_nanos_ = start_nanos + plan_.delay_nanos;
  do {
    FillPending();
  } while (FeedSome());
  while (!IsTimeToKill()) {
    if (kill_at_nanos_) {
      SleepUntilKill();
      continue;
    }
    if (!ListenAndFeed()) break;
    ALPHEUS_RETURN_IF_ERROR(TakeAcknowledgements());
    PlanKill(clock_.NowNanos());
  }
  child_.Kill();
  outcome_.alive_nanos = clock_.NowNanos() - start_nanos;
  const ProcessEnd end = child_.Wait();
  DrainAfterDeath();
  ALPHEUS_RETURN_IF_ERROR(TakeAcknowledgements());
  CheckDeath(end);
  return std::move(outcome_);
}

bool Victim::IsTimeToKill() {
  const int64_t now = clock_.NowNanos();
  if (kill_at_nanos_) return now >= *kill_at_nanos_;
  if (now - last_ack_nanos_ < kSilenceNanosMax) return false;
  outcome_.misbehaviour = absl::StrCat(
      "acknowledged nothing for ", kSilenceNanosMax / kNanosPerSecond, " s");
  return true;
}

void Victim::PlanKill(int64_t now) {
  if (!first_ack_nanos_ && !outcome_.acknowledgements.empty()) {
    first_ack_nanos_ = now;
  }
  if (kill_at_nanos_ || !first_ack_nanos_) return;
  const bool enough = outcome_.acknowledgements.size() >= plan_.ack_count;
  const bool late = now - *first_ack_nanos_ >= plan_.wait_nanos_max;
  if (enough || late) kill_at_nanos_ = now + plan_.delay_nanos;
}

bool Victim::ListenAndFeed() {
  FillPending();
  const int input = pending_.empty() ? -1 : child_.input().get();
  std::array<pollfd, 3> fds = {{{child_.output().get(), POLLIN, 0},
                                {child_.error().get(), POLLIN, 0},
                                {input, POLLOUT, 0}}};
  const timespec wait = TimespecOf(kNanosPerSecond);
  if (ppoll(fds.data(), fds.size(), &wait, nullptr) <= 0) return true;
  if (fds[1].revents != 0 && !ReadSome(fds[1].fd, &said_)) {
    child_.error().Close();
  }
  if (fds[2].revents != 0) FeedSome();
  return fds[0].revents == 0 || ReadSome(fds[0].fd, &heard_);
}

void Victim::SleepUntilKill() {
  const timespec wait = TimespecOf(*kill_at_nanos_ - clock_.NowNanos());
  ppoll(nullptr, 0, &wait, nullptr);
}

void Victim::FillPending() {
  while (pending_.size() < kPendingBytes &&
         made_ring_bytes_ < plan_.ring_bytes_max) {
    const std::string record = feed_.Record(first_number_ + made_count_);
    pending_.append(record);
    pending_.push_back('\n');
    made_bytes_ += record.size() + 1;
    made_ring_bytes_ += RecordBytes(record.size());
    ++made_count_;
    unfed_ends_.push_back(made_bytes_);
  }
}

bool Victim::FeedSome() {
  if (pending_.empty()) return false;
  const ssize_t written =
      write(child_.input().get(), pending_.data(), pending_.size());
  if (written <= 0) return false;  // if the victim is gone, its end tells why
  fed_bytes_ += static_cast<uint64_t>(written);
  pending_.erase(0, static_cast<size_t>(written));
  while (!unfed_ends_.empty() && unfed_ends_.front() <= fed_bytes_) {
    unfed_ends_.pop_front();
    ++outcome_.fed_count;
  }
  return true;
}

absl::Status Victim::TakeAcknowledgements() {
  size_t begin = 0;
  for (;;) {
    const size_t end = heard_.find('\n', begin);
    if (end == std::string::npos) break;
    ALPHEUS_RETURN_IF_ERROR(
        TakeAcknowledgement(heard_.substr(begin, end - begin)));
    begin = end + 1;
  }
  heard_.erase(0, begin);
  return absl::OkStatus();
}

absl::Status Victim::TakeAcknowledgement(const std::string& line) {
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
  outcome_.acknowledgements.push_back({{lsn, first_number_ + index}, thread});
  last_ack_nanos_ = clock_.NowNanos();
  return absl::OkStatus();
}

// What a dead process wrote stays in the pipe until it is read.
void Victim::DrainAfterDeath() {
  while (ReadSome(child_.output().get(), &heard_)) {
  }
  while (child_.error().is_open() && ReadSome(child_.error().get(), &said_)) {
  }
}

void Victim::CheckDeath(const ProcessEnd& end) {
  if (end.signal != SIGKILL && !outcome_.misbehaviour) {
    outcome_.misbehaviour = "ended before it was killed";
  }
  if (!outcome_.misbehaviour) return;
  absl::StrAppend(&*outcome_.misbehaviour, " (", end.ToString(), "): ", said_);
}

}  // namespace alpheus::demo
