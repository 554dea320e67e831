// SPDX-License-Identifier: Apache-2.0
// read_stream: durable records of a log, from one LSN to another.
//
// Idea: the log says first how far the read goes (ServiceLog::BeginRead), and
// may have to ask its backups for that. The answer comes on a thread of the
// log, which goes on at once: the readers' thread begins to read. Then one
// message is under way at a time. The next one is read when it has left, on
// gRPC's thread, so a slow client takes one message of memory, and no other one
// waits for it.
//
// Invariants:
//   RDS1. The stream has left the log soon after that is drained, whether or
//         not its client reads (SST1, server_stream.h).
//   RDS2. No message leaves once the client may no longer read: the stream ends
//         in its place (ACS2, access.h).
//   RDS3. A linearizable read takes its records after its call has begun and
//         the epoch was confirmed (SLG8, service_log.h).
// Thread safety: gRPC's threads, those of the log, the readers' thread, and one
// that drains.
#ifndef ALPHEUS_API_GRPC_CALLS_READ_STREAM_H_
#define ALPHEUS_API_GRPC_CALLS_READ_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "alpheus/v1/log_service.pb.h"
#include "api/grpc/access/access.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/record_reader.h"
#include "api/grpc/calls/server_stream.h"
#include "api/grpc/wire/call_error.h"
#include "api/service/served/served_logs.h"
#include "api/wiring/task_thread.h"
#include "log/base/ids.h"

namespace alpheus::rpc {

class ReadStream final
    : public ServerStream<ReadStream,
                          grpc::ServerWriteReactor<v1::ReadResponse>> {
 public:
  // Begins to read. The stream owns itself until it is done. `tasks` and
  // `counts` must outlive it, and `tasks` all logs; `request` is valid until
  // then.
  static ReadStream* Start(service::ServedLogs& logs, TaskThread& tasks,
                           CallCounts& counts, Permit permit,
                           const v1::ReadRequest& request);

 private:
  ReadStream(TaskThread& tasks, CallCounts& counts, Permit permit,
             const v1::ReadRequest& request)
      : ServerStream(counts, Method::kRead),
        tasks_(tasks),
        request_(request),
        permit_(std::move(permit)) {}

  std::optional<CallError> Enter(service::ServedLogs& logs);
  // The log says through which LSN it is durable, or why it can't.
  void OnBegun(const absl::StatusOr<Lsn>& durable);
  // Reads the first message. Requires: begun_ is set.
  void Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<CallError> Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  void StopReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override {
    reader_.reset();
  }

  TaskThread& tasks_;
  const v1::ReadRequest& request_;  // gRPC's, until OnDone

  // Start has not asked the log yet, or is asking: it begins itself.
  bool is_starting_ ABSL_GUARDED_BY(mutex_) = true;
  std::optional<absl::StatusOr<Lsn>> begun_ ABSL_GUARDED_BY(mutex_);
  Permit permit_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RecordReader> reader_ ABSL_GUARDED_BY(mutex_);
  Lsn last_ ABSL_GUARDED_BY(mutex_);
  v1::ReadResponse response_;  // gRPC's while it is under way
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_READ_STREAM_H_
