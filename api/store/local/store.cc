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
           .wake = [this] { NoteNews(); }}));
  cleaner_ = std::make_unique<Cleaner>(object_log_, *engine_,
                                       Cleaner::Options());
  return absl::OkStatus();
}

// Callbacks of the log may come until it is gone; those that are under way have
// this object.
Store::~Store() {
  bool is_idle = false;
  while (!is_idle) {
    const uint64_t seen = news_count();
    {
      const MutexLock lock(mutex_);
      if (engine_ == nullptr) return;  // Begin failed
      engine_->Poll();
      is_idle = engine_->is_idle();
    }
    if (!is_idle) AwaitNews(seen, Deadline());
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

void Store::NoteNews() {
  {
    const std::lock_guard lock(news_mutex_);
    ++news_count_;
  }
  news_.notify_all();
}

uint64_t Store::news_count() {
  const std::lock_guard lock(news_mutex_);
  return news_count_;
}

bool Store::AwaitNews(uint64_t seen, Deadline deadline) {
  std::unique_lock lock(news_mutex_);
  const auto has_news = [&] { return news_count_ != seen; };
  if (!deadline.is_set()) {
    news_.wait(lock, has_news);
    return true;
  }
  const int64_t left = deadline.at_nanos() - Clock::Real().NowNanos();
  return news_.wait_for(lock, std::chrono::nanoseconds(left), has_news);
}

// --- Calls ------------------------------------------------------------------

absl::StatusOr<std::vector<Outcome>> Store::Write(
    const std::vector<Operation>& operations, Deadline deadline) {
  for (;;) {
    absl::StatusOr<std::vector<Outcome>> written =
        TryWrite(operations, deadline);
    if (!absl::IsResourceExhausted(written.status())) return written;
    // Nothing was written.
    ALPHEUS_ASSIGN_OR_RETURN(const bool has_freed, CleanSome());
    if (!has_freed) return written;
  }
}

absl::StatusOr<bool> Store::CleanSome() {
  const uint64_t before = log_.free_bytes();
  bool did_any = false;
  do {
    Lsn lsn;
    {
      const MutexLock lock(mutex_);
      engine_->Poll();
      ALPHEUS_ASSIGN_OR_RETURN(did_any, cleaner_->Poll());
      lsn = engine_->Append();
    }
    if (lsn > Lsn(0)) log_.Force(lsn).IgnoreError();
  } while (did_any && log_.free_bytes() <= before);
  return log_.free_bytes() > before;
}

absl::StatusOr<std::vector<Outcome>> Store::TryWrite(
    const std::vector<Operation>& operations, Deadline deadline) {
  const auto call = std::make_shared<Call>();
  Lsn lsn;
  {
    const MutexLock lock(mutex_);
    engine_->Submit(operations,
                    [call](const absl::Status& status,
                           const std::vector<Outcome>& outcomes) {
                      *call = {true, status, outcomes};
                    });
    lsn = engine_->Append();
    if (call->is_answered) return call->status;
    // A part of the cleaning goes with each write.
    ALPHEUS_ASSIGN_OR_RETURN(const bool is_cleaning, cleaner_->Poll());
    if (is_cleaning) lsn = std::max(lsn, engine_->Append());
  }
  // Their errors come to the engine, too.
  if (lsn > Lsn(0)) {
    log_.Force(lsn, {.deadline = deadline}).IgnoreError();
  } else {
    log_.ConfirmEpoch(deadline).IgnoreError();
  }
  for (;;) {
    const uint64_t seen = news_count();
    {
      const MutexLock lock(mutex_);
      engine_->Poll();
      if (call->is_answered) {
        ALPHEUS_RETURN_IF_ERROR(call->status);
        return std::move(call->outcomes);
      }
    }
    if (!AwaitNews(seen, deadline)) {
      return absl::DeadlineExceededError(
          "the store did not answer in time; outcome unknown: what was to be "
          "written may become durable later");
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

// STO2. The engine shows durable objects, and none that a later epoch does not
// have, since the epoch is confirmed first.
absl::StatusOr<std::optional<Store::Value>> Store::Get(std::string_view key,
                                                       Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(log_.ConfirmEpoch(deadline));
  const MutexLock lock(mutex_);
  engine_->Poll();
  const std::optional<Engine::Found> found = engine_->Get(AsBytes(key));
  if (!found) return std::optional<Value>();
  return Value{std::string(AsText(found->value)), found->version};
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
  return page;
}

}  // namespace alpheus::store
