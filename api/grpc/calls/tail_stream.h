// SPDX-License-Identifier: Apache-2.0
// tail_stream: durable records of a log, as they become durable.
//
// Idea: gRPC reads ahead and buffers by its own measure, so the client allows
// so many bytes by credits. The stream sends while it has some and no message
// is under way. Else it holds one message, and no thread. A stream that has
// sent all durable records sleeps in the log (ServedLog::Sleep). It is woken on
// the readers' thread, so that the log's thread, which made the record durable,
// goes on at once, however many readers there are.
//
// Invariants:
//   TLS1. At most one message is under way, and none without credit.
//   TLS2. The stream has left the log soon after that is drained, whether or
//         not its client reads (SST1, server_stream.h).
//   TLS3. No message leaves once the client may no longer read: the stream ends
//         in its place (ACS2, access.h).
// Thread safety: gRPC's threads, the readers' thread, and one that drains.
#ifndef ALPHEUS_API_GRPC_CALLS_TAIL_STREAM_H_
#define ALPHEUS_API_GRPC_CALLS_TAIL_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "alpheus/v1/log_service.pb.h"
#include "api/grpc/access/access.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/record_reader.h"
#include "api/grpc/calls/server_stream.h"
#include "api/grpc/wire/call_error.h"
#include "api/service/served/served_logs.h"
#include "api/wiring/task_thread.h"

namespace alpheus::rpc {

class TailStream final
    : public ServerStream<TailStream, grpc::ServerBidiReactor<
                                          v1::TailRequest, v1::TailResponse>> {
 public:
  // Begins to read. The stream owns itself until it is done. `tasks` and
  // `counts` must outlive it, and `tasks` all logs.
  static TailStream* Start(service::ServedLogs& logs, TaskThread& tasks,
                           CallCounts& counts, Permit permit);

 private:
  TailStream(service::ServedLogs& logs, TaskThread& tasks, CallCounts& counts,
             Permit permit)
      : ServerStream(counts, Method::kTail),
        logs_(logs),
        tasks_(tasks),
        permit_(std::move(permit)) {}

  void OnReadDone(bool ok) override;
  void OnWake();

  std::optional<CallError> TakeBegin(const v1::TailRequest& message);
  std::optional<CallError> TakeCredit(const v1::TailRequest& message);
  // Reads the next message of the client, unless the stream ends.
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends what there is, or sleeps until there is some (TLS1).
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  void StopReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override {
    reader_.reset();
  }
  void Sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  service::ServedLogs& logs_;
  TaskThread& tasks_;
  v1::TailRequest request_;  // of the thread that reads
  bool has_begun_ = false;   // the same

  Permit permit_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RecordReader> reader_ ABSL_GUARDED_BY(mutex_);
  uint64_t credit_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::TailResponse response_;  // gRPC's while it is under way
  bool is_asleep_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_TAIL_STREAM_H_
