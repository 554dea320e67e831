// SPDX-License-Identifier: Apache-2.0
// read_stream: durable records of a log, from one LSN to another.
//
// Idea: one message is under way at a time. The next one is read when it has
// left, on gRPC's thread, so a slow client takes one message of memory, and no
// other one waits for it.
//
// Invariants:
//   RDS1. The stream has left the log soon after that is drained, whether or
//         not its client reads.
//   RDS2. No message leaves once the client may no longer read: the stream ends
//         in its place (ACS2, access.h).
// Thread safety: gRPC's threads, and one that drains.
#ifndef ALPHEUS_API_GRPC_CALLS_READ_STREAM_H_
#define ALPHEUS_API_GRPC_CALLS_READ_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "alpheus/v1/log_service.pb.h"
#include "api/grpc/access/access.h"
#include "api/grpc/calls/log_use.h"
#include "api/grpc/calls/record_reader.h"
#include "api/grpc/wire/call_error.h"
#include "api/service/served/served_logs.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"

namespace alpheus::rpc {

class ReadStream final : public grpc::ServerWriteReactor<v1::ReadResponse>,
                         public service::LogGuest,
                         public std::enable_shared_from_this<ReadStream> {
 public:
  // Begins to read. The stream owns itself until it is done.
  static ReadStream* Start(service::ServedLogs& logs, Permit permit,
                           const v1::ReadRequest& request);

 private:
  explicit ReadStream(Permit permit) : permit_(std::move(permit)) {}

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void OnDrain() override;

  std::optional<CallError> Open(service::ServedLogs& logs,
                                const v1::ReadRequest& request);
  // Fills the next message, and sends it. Requires: none is under way.
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the log up.
  void LeaveLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<ReadStream> self_;  // until OnDone

  Mutex mutex_;
  Permit permit_ ABSL_GUARDED_BY(mutex_);
  SharedUse use_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RecordReader> reader_ ABSL_GUARDED_BY(mutex_);
  Lsn last_ ABSL_GUARDED_BY(mutex_);
  v1::ReadResponse response_;  // gRPC's while it is under way
  grpc::Status end_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_READ_STREAM_H_
