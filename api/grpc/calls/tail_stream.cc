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
                              Permit permit) {
  std::shared_ptr<TailStream> stream(
      new TailStream(logs, tasks, std::move(permit)));
  stream->self_ = stream;
  const MutexLock lock(stream->mutex_);
  stream->ReadNext();
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
    if (is_ending_) return std::nullopt;
    use_ = use;
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
  if (!is_ending_) StartRead(&request_);
}

void TailStream::SendNext() {
  const bool may_send = reader_ != nullptr && !is_ending_ && !is_writing_ &&
                        !is_asleep_ && credit_ > 0;
  if (!may_send) return;
  if (const absl::Status may = permit_.Recheck(); !may.ok()) {
    End(NotAllowed(may).ToStatus());
    return;
  }
  response_.Clear();
  const absl::StatusOr<RecordReader::Taken> taken =
      reader_->Read(std::min<uint64_t>(kTailMessageBytes, credit_), kNoEnd,
                    response_.mutable_records());
  if (!taken.ok()) {
    End(ErrorOf(taken.status(), (*use_)->log().head_lsn()).ToStatus());
    return;
  }
  if (response_.records().empty() && !taken->is_far) {
    Sleep();
    return;
  }
  response_.set_next_lsn(reader_->next_lsn().value);
  response_.set_durable_lsn(reader_->durable_lsn().value);
  credit_ -= std::min<uint64_t>(credit_, taken->payload_bytes);
  is_writing_ = true;
  StartWrite(&response_);
}

void TailStream::Sleep() {
  is_asleep_ = true;
  (*use_)->Sleep(this, reader_->next_lsn(),
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

void TailStream::OnWriteDone(bool ok) {
  const std::shared_ptr<TailStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  is_writing_ = false;
  if (!ok) End(grpc::Status::CANCELLED);
  if (is_ending_) {
    End(end_);
  } else {
    SendNext();
  }
}

void TailStream::OnCancel() {
  const std::shared_ptr<TailStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  End(grpc::Status::CANCELLED);
}

void TailStream::OnDrain() {
  const std::shared_ptr<TailStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  End(HandedOver().ToStatus());
}

void TailStream::End(grpc::Status status) {
  if (!std::exchange(is_ending_, true)) end_ = std::move(status);
  reader_.reset();
  if (use_ != nullptr) (*use_)->Leave(this);
  use_.reset();
  if (is_writing_ || std::exchange(is_finished_, true)) return;
  Finish(end_);
}

void TailStream::OnDone() {
  const std::shared_ptr<TailStream> last = std::move(self_);
}

}  // namespace alpheus::rpc
