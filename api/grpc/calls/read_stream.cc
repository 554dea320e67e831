// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/read_stream.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "api/grpc/wire/messages.h"
#include "api/service/log/service_log.h"

namespace alpheus::rpc {
namespace {

constexpr size_t kReadMessageBytes = size_t{256} << 10;

}  // namespace

ReadStream* ReadStream::Start(service::ServedLogs& logs, TaskThread& tasks,
                              CallCounts& counts, Permit permit,
                              const v1::ReadRequest& request) {
  std::shared_ptr<ReadStream> stream(
      new ReadStream(tasks, counts, std::move(permit), request));
  stream->OwnItself();
  if (const auto error = stream->Enter(logs)) {
    const MutexLock lock(stream->mutex_);
    stream->End(error->ToStatus());
  }
  return stream.get();
}

std::optional<CallError> ReadStream::Enter(service::ServedLogs& logs) {
  const absl::Status may = [&] {
    const MutexLock lock(mutex_);
    return permit_.Enter(request_.log());
  }();
  if (!may.ok()) return NotAllowed(may);
  if (auto error = CheckConsistency(request_.consistency())) return error;
  service::FoundLog found = logs.Find(request_.log());
  if (!found.use) return ErrorOf(found);
  const SharedUse use = Share(std::move(found.use));
  {
    const MutexLock lock(mutex_);
    KeepLog(use);
  }
  (*use)->Join(shared_from_this());
  // One that is cancelled is over at once, and keeps nothing here.
  (*use)->BeginRead(
      ConsistencyOf(request_.consistency()), Lsn(request_.to_lsn()),
      [self = weak_from_this()](const absl::StatusOr<Lsn>& durable) {
        if (const auto stream = self.lock()) stream->OnBegun(durable);
      });
  const MutexLock lock(mutex_);
  is_starting_ = false;
  if (begun_) Begin();
  return std::nullopt;
}

// A read may take long, and the thread is the log's, unless it is that of
// Start.
void ReadStream::OnBegun(const absl::StatusOr<Lsn>& durable) {
  const MutexLock lock(mutex_);
  begun_ = durable;
  if (is_starting_ || is_ending()) return;
  tasks_.Post([stream = shared_from_this()] {
    const MutexLock again(stream->mutex_);
    stream->Begin();
  });
}

void ReadStream::Begin() {
  if (is_ending()) return;
  if (const auto error = Open()) return End(error->ToStatus());
  SendNext();
}

std::optional<CallError> ReadStream::Open() {
  Log& log = (*use())->log();
  if (!begun_->ok()) return ErrorOf(begun_->status(), log.head_lsn());
  const Lsn durable = **begun_;
  last_ = request_.to_lsn() == 0 ? durable : Lsn(request_.to_lsn());
  if (last_ > durable) {
    return ErrorOf(absl::OutOfRangeError(absl::StrCat(
                       "read to LSN ", last_.value,
                       ": the last durable one is ", durable.value)),
                   log.head_lsn());
  }
  absl::StatusOr<std::unique_ptr<RecordReader>> reader =
      RecordReader::Open(log, Lsn(request_.from_lsn()), request_.tags());
  if (!reader.ok()) return ErrorOf(reader.status(), log.head_lsn());
  reader_ = *std::move(reader);
  return std::nullopt;
}

void ReadStream::SendNext() {
  const absl::Status may = permit_.Recheck();
  if (!may.ok()) {
    End(NotAllowed(may).ToStatus());
    return;
  }
  response_.Clear();
  const absl::StatusOr<RecordReader::Taken> taken =
      reader_->Read(kReadMessageBytes, last_, response_.mutable_records());
  if (!taken.ok()) {
    End(ErrorOf(taken.status(), (*use())->log().head_lsn()).ToStatus());
    return;
  }
  response_.set_next_lsn(reader_->next_lsn().value);
  if (taken->is_at_end) {
    LeaveLog();
    SendLast(response_);
    return;
  }
  Send(response_);
}

}  // namespace alpheus::rpc
