// SPDX-License-Identifier: Apache-2.0
#include "api/store/local/store.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/mix.h"
#include "log/base/status_macros.h"

namespace alpheus::store {
namespace {

// A request, and its answer once there is one.
struct Call {
  bool is_answered = false;
  absl::Status status;
  std::vector<Outcome> outcomes;
};

}  // namespace

void Store::FreeMemory::operator()(std::byte* memory) const {
  std::free(memory);
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(Log& log) {
  std::unique_ptr<Store> store(new Store(log));
  ALPHEUS_RETURN_IF_ERROR(store->Begin());
  return store;
}

absl::Status Store::Begin() {
  const Uuid log_id = log_.report().log_id;
  const MutexLock lock(mutex_);
  ALPHEUS_ASSIGN_OR_RETURN(
      engine_,
      Engine::Recover(
          object_log_,
          {.allocate = [this](size_t bytes) { return Allocate(bytes); },
           .hash_seed = Mix(log_id.high, log_id.low),
           .wake = [bell = bell_] { bell->Ring(); }}));
  cleaner_ =
      std::make_unique<Cleaner>(object_log_, *engine_, Cleaner::Options());
  return absl::OkStatus();
}

// All that was submitted is answered, so that nothing is written later.
Store::~Store() {
  for (;;) {
    const uint64_t seen = bell_->rings();
    {
      const MutexLock lock(mutex_);
      if (engine_ == nullptr) return;  // Begin failed
      engine_->Poll();
      if (engine_->is_idle()) return;
    }
    bell_->Await(seen, Deadline());
  }
}

absl::StatusOr<std::span<std::byte>> Store::Allocate(size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(
      Segment::kBucketBytes, RoundUp(bytes, Segment::kBucketBytes)));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes of the store's index"));
  }
  memory_.emplace_back(memory);
  std::fill_n(memory, bytes, std::byte{0});
  return std::span(memory, bytes);
}

// --- News -------------------------------------------------------------------

void Store::Bell::Ring() {
  {
    const std::lock_guard lock(mutex_);
    ++rings_;
  }
  rung_.notify_all();
}

uint64_t Store::Bell::rings() {
  const std::lock_guard lock(mutex_);
  return rings_;
}

bool Store::Bell::Await(uint64_t seen, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto has_rung = [&] { return rings_ != seen; };
  if (!deadline.is_set()) {
    rung_.wait(lock, has_rung);
    return true;
  }
  const int64_t left = deadline.at_nanos() - Clock::Real().NowNanos();
  return rung_.wait_for(lock, std::chrono::nanoseconds(left), has_rung);
}

// --- Writing ----------------------------------------------------------------

absl::StatusOr<std::vector<Outcome>> Store::Write(
    const std::vector<Operation>& operations, Deadline deadline) {
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(Attempt attempt, TryWrite(operations, deadline));
    if (attempt.refusal.ok()) return std::move(attempt.outcomes);
    if (absl::IsResourceExhausted(attempt.refusal)) {
      ALPHEUS_ASSIGN_OR_RETURN(const bool has_freed, Clean(deadline));
      if (!has_freed) return attempt.refusal;
    } else {
      ALPHEUS_RETURN_IF_ERROR(AwaitLog(deadline));
    }
  }
}

absl::StatusOr<Store::Attempt> Store::TryWrite(
    const std::vector<Operation>& operations, Deadline deadline) {
  const auto call = std::make_shared<Call>();
  Lsn lsn;
  {
    const MutexLock lock(mutex_);
    engine_->Submit(operations, [call](const absl::Status& status,
                                       const std::vector<Outcome>& outcomes) {
      *call = {true, status, outcomes};
    });
    lsn = engine_->Append();
    if (call->is_answered) {
      const bool is_refused = absl::IsResourceExhausted(call->status) ||
                              absl::IsDeadlineExceeded(call->status);
      if (is_refused && engine_->status().ok())
        return Attempt{call->status, {}};
      ALPHEUS_RETURN_IF_ERROR(call->status);
      return Attempt{absl::OkStatus(), std::move(call->outcomes)};
    }
    // A part of the cleaning goes with each write. What stops it is told once
    // there is no room without it.
    if (const absl::StatusOr<bool> any = cleaner_->Poll(); any.ok() && *any) {
      lsn = std::max(lsn, engine_->Append());
    }
  }
  // Their errors come to the engine, too.
  if (lsn > Lsn(0)) {
    log_.Force(lsn, {.deadline = deadline}).IgnoreError();
  } else {
    log_.ConfirmEpoch(deadline).IgnoreError();
  }
  for (;;) {
    const uint64_t seen = bell_->rings();
    {
      const MutexLock lock(mutex_);
      engine_->Poll();
      if (call->is_answered) {
        ALPHEUS_RETURN_IF_ERROR(call->status);
        return Attempt{absl::OkStatus(), std::move(call->outcomes)};
      }
    }
    if (!bell_->Await(seen, deadline)) {
      return absl::DeadlineExceededError(
          "the store did not answer in time; outcome unknown: what was to be "
          "written may become durable later");
    }
  }
}

absl::Status Store::AwaitLog(Deadline deadline) {
  const Lsn last = log_.next_lsn() - 1;
  if (log_.durable_lsn() < last) {
    return log_.Force(last, {.deadline = deadline});
  }
  const uint64_t seen = bell_->rings();
  ALPHEUS_ASSIGN_OR_RETURN(
      const bool is_held,
      log_.OnResumed([bell = bell_](const absl::Status&) { bell->Ring(); }));
  // With the answers to a question come those that backups owe of the head.
  if (!is_held) return log_.ConfirmEpoch(deadline);
  if (bell_->Await(seen, deadline)) return absl::OkStatus();
  return absl::DeadlineExceededError(
      "the log took no record in time. Nothing was written");
}

absl::StatusOr<bool> Store::Clean(Deadline deadline) {
  const uint64_t before = log_.free_bytes();
  for (;;) {
    const uint64_t seen = bell_->rings();
    Lsn lsn;
    absl::StatusOr<bool> any = false;
    bool is_busy = false;
    {
      const MutexLock lock(mutex_);
      engine_->Poll();
      any = cleaner_->Poll();
      lsn = engine_->Append();
      is_busy = cleaner_->is_busy();
    }
    if (absl::IsDeadlineExceeded(any.status())) {
      ALPHEUS_RETURN_IF_ERROR(AwaitLog(deadline));
      continue;
    }
    ALPHEUS_RETURN_IF_ERROR(any.status());
    if (lsn > Lsn(0)) log_.Force(lsn, {.deadline = deadline}).IgnoreError();
    if (log_.free_bytes() > before) return true;
    if (*any) continue;
    if (!is_busy) return false;
    // Another thread is making the copies durable.
    if (!bell_->Await(seen, deadline)) {
      return absl::DeadlineExceededError(
          "the store's log was not cleaned in time. Nothing was written");
    }
  }
}

absl::StatusOr<Outcome> Store::Put(std::string_view key, std::string_view value,
                                   Condition condition, Deadline deadline) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::vector<Outcome> outcomes,
      Write({{Operation::Kind::kPut, AsBytes(key), AsBytes(value), condition}},
            deadline));
  return outcomes.front();
}

absl::StatusOr<Outcome> Store::Delete(std::string_view key, Condition condition,
                                      Deadline deadline) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes,
                           Write({{.kind = Operation::Kind::kDelete,
                                   .key = AsBytes(key),
                                   .condition = condition}},
                                 deadline));
  return outcomes.front();
}

// --- Reading ----------------------------------------------------------------

// STO2. Called after the reading: the bytes may be another primary's.
absl::Status Store::CheckAnswer() {
  ALPHEUS_RETURN_IF_ERROR(engine_->status());
  return log_.CheckPayloads();
}

// STO2. The engine shows durable objects, and none that a later epoch does not
// have, since the epoch is confirmed first.
absl::StatusOr<std::optional<Store::Value>> Store::Get(std::string_view key,
                                                       Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(log_.ConfirmEpoch(deadline));
  const MutexLock lock(mutex_);
  engine_->Poll();
  const std::optional<Engine::Found> found = engine_->Get(AsBytes(key));
  std::optional<Value> value;
  if (found) value = Value{std::string(AsText(found->value)), found->version};
  ALPHEUS_RETURN_IF_ERROR(CheckAnswer());
  return value;
}

absl::StatusOr<Store::Page> Store::Scan(uint64_t cursor, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(log_.ConfirmEpoch(deadline));
  const MutexLock lock(mutex_);
  engine_->Poll();
  Page page;
  const std::optional<uint64_t> next = engine_->Scan(
      cursor, [&](std::span<const std::byte> key, const Engine::Found& found) {
        page.entries.push_back(
            {std::string(AsText(key)),
             {std::string(AsText(found.value)), found.version}});
      });
  page.next = next.value_or(0);
  ALPHEUS_RETURN_IF_ERROR(CheckAnswer());
  return page;
}

}  // namespace alpheus::store
