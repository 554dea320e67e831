// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/read_stream.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace alpheus::rpc {
namespace {

constexpr size_t kReadMessageBytes = size_t{256} << 10;

}  // namespace

ReadStream* ReadStream::Start(service::ServedLogs& logs, Permit permit,
                              const v1::ReadRequest& request) {
  std::shared_ptr<ReadStream> stream(new ReadStream(std::move(permit)));
  stream->self_ = stream;
  const std::optional<CallError> error = stream->Open(logs, request);
  const MutexLock lock(stream->mutex_);
  if (error) {
    stream->End(error->ToStatus());
  } else if (!stream->is_ending_) {
    stream->SendNext();
  }
  return stream.get();
}

std::optional<CallError> ReadStream::Open(service::ServedLogs& logs,
                                          const v1::ReadRequest& request) {
  const absl::Status may = [&] {
    const MutexLock lock(mutex_);
    return permit_.Enter(request.log());
  }();
  if (!may.ok()) return NotAllowed(may);
  service::FoundLog found = logs.Find(request.log());
  if (!found.use) return ErrorOf(found);
  const SharedUse use = Share(std::move(found.use));
  Log& log = (*use)->log();
  const Lsn durable = log.durable_lsn();
  const Lsn last = request.to_lsn() == 0 ? durable : Lsn(request.to_lsn());
  if (last > durable) {
    return ErrorOf(absl::OutOfRangeError(absl::StrCat(
                       "read to LSN ", last.value, ": the last durable one is ",
                       durable.value)),
                   log.head_lsn());
  }
  absl::StatusOr<std::unique_ptr<RecordReader>> reader =
      RecordReader::Open(log, Lsn(request.from_lsn()), request.tags());
  if (!reader.ok()) return ErrorOf(reader.status(), log.head_lsn());
  {
    const MutexLock lock(mutex_);
    use_ = use;
    reader_ = *std::move(reader);
    last_ = last;
  }
  (*use)->Join(shared_from_this());
  return std::nullopt;
}

void ReadStream::SendNext() {
  if (const absl::Status may = permit_.Recheck(); !may.ok()) {
    End(NotAllowed(may).ToStatus());
    return;
  }
  response_.Clear();
  const absl::StatusOr<RecordReader::Taken> taken =
      reader_->Read(kReadMessageBytes, last_, response_.mutable_records());
  if (!taken.ok()) {
    End(ErrorOf(taken.status(), (*use_)->log().head_lsn()).ToStatus());
    return;
  }
  response_.set_next_lsn(reader_->next_lsn().value);
  if (taken->is_at_end) {
    LeaveLog();
    is_ending_ = true;
    is_finished_ = true;
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    return;
  }
  is_writing_ = true;
  StartWrite(&response_);
}

void ReadStream::OnWriteDone(bool ok) {
  const std::shared_ptr<ReadStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  is_writing_ = false;
  if (is_finished_) return;
  if (!ok) End(grpc::Status::CANCELLED);
  if (is_ending_) {
    End(end_);
  } else {
    SendNext();
  }
}

void ReadStream::OnCancel() {
  const std::shared_ptr<ReadStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  End(grpc::Status::CANCELLED);
}

void ReadStream::OnDrain() {
  const std::shared_ptr<ReadStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  End(HandedOver().ToStatus());
}

void ReadStream::End(grpc::Status status) {
  if (!std::exchange(is_ending_, true)) end_ = std::move(status);
  LeaveLog();
  if (is_writing_ || std::exchange(is_finished_, true)) return;
  Finish(end_);
}

void ReadStream::LeaveLog() {
  reader_.reset();
  if (use_ != nullptr) (*use_)->Leave(this);
  use_.reset();
}

void ReadStream::OnDone() {
  const std::shared_ptr<ReadStream> last = std::move(self_);
}

}  // namespace alpheus::rpc
