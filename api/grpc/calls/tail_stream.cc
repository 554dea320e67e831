// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/tail_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus::rpc {
namespace {

// A reader that is behind gets messages of this size; larger ones would not be
// faster, and each stream keeps one.
constexpr size_t kTailMessageBytes = size_t{64} << 10;
constexpr Lsn kNoEnd{std::numeric_limits<uint64_t>::max()};

}  // namespace

TailStream* TailStream::Start(service::ServedLogs& logs, TaskThread& tasks,
                              CallCounts& counts, Permit permit) {
  std::shared_ptr<TailStream> stream(
      new TailStream(logs, tasks, counts, std::move(permit)));
  stream->OwnItself();
  const MutexLock lock(stream->mutex_);
  const absl::Status known = stream->permit_.CheckKnown();
  if (known.ok()) {
    stream->ReadNext();
  } else {  // ACS3
    stream->End(NotAllowed(known).ToStatus());
  }
  return stream.get();
}

void TailStream::OnReadDone(bool ok) {
  const std::shared_ptr<TailStream> self = shared_from_this();
  std::optional<CallError> error;
  if (ok) error = has_begun_ ? TakeCredit(request_) : TakeBegin(request_);
  const MutexLock lock(mutex_);
  if (!ok) End(grpc::Status::OK);
  if (error) End(error->ToStatus());
  ReadNext();
  SendNext();
}

std::optional<CallError> TailStream::TakeBegin(const v1::TailRequest& message) {
  if (!message.has_begin()) return Invalid("a stream starts with `begin`");
  const absl::Status may = [&] {
    const MutexLock lock(mutex_);
    return permit_.Enter(message.begin().log());
  }();
  if (!may.ok()) return NotAllowed(may);
  service::FoundLog found = logs_.Find(message.begin().log());
  if (!found.use) return ErrorOf(found);
  const SharedUse use = Share(std::move(found.use));
  Log& log = (*use)->log();
  absl::StatusOr<std::unique_ptr<RecordReader>> reader = RecordReader::Open(
      log, Lsn(message.begin().from_lsn()), message.begin().tags());
  if (!reader.ok()) return ErrorOf(reader.status(), log.head_lsn());
  has_begun_ = true;
  {
    const MutexLock lock(mutex_);
    // Its client has gone.
    if (is_ending()) return std::nullopt;
    KeepLog(use);
    reader_ = *std::move(reader);
  }
  (*use)->Join(shared_from_this());
  return std::nullopt;
}

std::optional<CallError> TailStream::TakeCredit(
    const v1::TailRequest& message) {
  if (!message.has_credit() || message.credit().bytes() == 0) {
    return Invalid("after `begin` each message is `credit`, of some bytes");
  }
  const MutexLock lock(mutex_);
  const absl::Status may = permit_.Recheck();
  if (!may.ok()) return NotAllowed(may);
  const uint64_t room = std::numeric_limits<uint64_t>::max() - credit_;
  credit_ += std::min(room, message.credit().bytes());
  return std::nullopt;
}

void TailStream::ReadNext() {
  if (!is_ending()) StartRead(&request_);
}

void TailStream::SendNext() {
  const bool may_send = reader_ != nullptr && !is_ending() && !is_writing() &&
                        !is_asleep_ && credit_ > 0;
  if (!may_send) return;
  const absl::Status may = permit_.Recheck();
  if (!may.ok()) {
    End(NotAllowed(may).ToStatus());
    return;
  }
  response_.Clear();
  const absl::StatusOr<RecordReader::Taken> taken =
      reader_->Read(std::min<uint64_t>(kTailMessageBytes, credit_), kNoEnd,
                    response_.mutable_records());
  if (!taken.ok()) {
    End(ErrorOf(taken.status(), (*use())->log().head_lsn()).ToStatus());
    return;
  }
  if (response_.records().empty() && !taken->is_far) {
    Sleep();
    return;
  }
  response_.set_next_lsn(reader_->next_lsn().value);
  response_.set_durable_lsn(reader_->durable_lsn().value);
  credit_ -= std::min<uint64_t>(credit_, taken->payload_bytes);
  Send(response_);
}

void TailStream::Sleep() {
  is_asleep_ = true;
  (*use())->Sleep(this, reader_->next_lsn(),
                  [self = weak_from_this(), &tasks = tasks_] {
                    tasks.Post([self] {
                      if (const auto stream = self.lock()) stream->OnWake();
                    });
                  });
}

void TailStream::OnWake() {
  const MutexLock lock(mutex_);
  is_asleep_ = false;
  SendNext();
}

}  // namespace alpheus::rpc
