// SPDX-License-Identifier: Apache-2.0
// server_stream: what streams have in common on which the server sends what it
// reads from a log.
//
// Idea: one message is under way at a time, and the next one is made when it
// has left. gRPC, a drain and the stream itself may each end it at any moment:
// the log is left at once, and the status goes out once no message is under
// way.
//
// Invariants:
//   SST1. A stream that ends has left its log when End returns, whether or not
//         its client reads.
//   SST2. No message is begun while another one is under way, or after the end.
//   SST3. A stream finishes once, with the first status that ended it, and is
//         counted with that.
// Thread safety: gRPC's threads, one that drains, and those of the stream
// itself. mutex_ guards all that changes. The object lives until OnDone, and
// while a thread that is not gRPC's has it.
#ifndef ALPHEUS_API_GRPC_CALLS_SERVER_STREAM_H_
#define ALPHEUS_API_GRPC_CALLS_SERVER_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/log_use.h"
#include "api/grpc/wire/call_error.h"
#include "api/service/served/served_log.h"
#include "log/base/mutex.h"

namespace alpheus::rpc {

// `Stream` is the class that derives from it, `Reactor` that of gRPC.
template <class Stream, class Reactor>
class ServerStream : public Reactor,
                     public service::LogGuest,
                     public std::enable_shared_from_this<Stream> {
 protected:
  ~ServerStream() override = default;

  // Counts the stream as begun. From now on it owns itself, until OnDone. Call
  // it once, before all that gRPC could end.
  void OwnItself() {
    counts_.NoteStreamBegun(method_);
    self_ = this->shared_from_this();
  }

  // Makes the next message and sends it, or ends the stream. Called when a
  // message has left. Requires: none is under way, and the stream goes on.
  virtual void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Drops what reads the log; again does nothing.
  virtual void StopReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // Keeps the log until LeaveLog. The caller joins it as a guest, without the
  // lock: a log that is drained calls OnDrain at once.
  void KeepLog(SharedUse use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    use_ = std::move(use);
  }
  // Gives the log up; again does nothing.
  void LeaveLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    StopReading();
    if (use_ != nullptr) (*use_)->Leave(this);
    use_.reset();
  }

  // Sends a message, which is gRPC's until OnWriteDone. Requires: none is under
  // way, and the stream goes on.
  template <class Response>
  void Send(const Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_writing_ = true;
    this->StartWrite(&response);
  }
  // Sends the last message, and ends the stream well. Requires: as Send; the
  // log was left.
  template <class Response>
  void SendLast(const Response& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_ending_ = true;
    is_finished_ = true;
    this->StartWriteAndFinish(&response, grpc::WriteOptions(),
                              grpc::Status::OK);
  }
  // Ends the stream; the first status counts (SST3).
  void End(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(is_ending_, true)) end_ = std::move(status);
    LeaveLog();
    if (is_writing_ || std::exchange(is_finished_, true)) return;
    this->Finish(end_);
  }

  // The log that is kept; nullptr: none.
  const SharedUse& use() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return use_;
  }
  bool is_writing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_writing_;
  }
  bool is_ending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_ending_;
  }

  Mutex mutex_;

 private:
  friend Stream;  // nobody else makes one

  // `counts` must outlive it.
  ServerStream(CallCounts& counts, Method method)
      : counts_(counts), method_(method) {}

  void OnWriteDone(bool ok) final {
    const std::shared_ptr<Stream> self = this->shared_from_this();
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
  void OnCancel() final {
    const std::shared_ptr<Stream> self = this->shared_from_this();
    const MutexLock lock(mutex_);
    End(grpc::Status::CANCELLED);
  }
  void OnDrain() final {
    const std::shared_ptr<Stream> self = this->shared_from_this();
    const MutexLock lock(mutex_);
    End(HandedOver().ToStatus());
  }
  void OnDone() final {
    const std::shared_ptr<Stream> last = std::move(self_);
    const MutexLock lock(mutex_);
    counts_.NoteStreamEnded(method_, end_.error_code());
  }

  CallCounts& counts_;
  const Method method_;
  std::shared_ptr<Stream> self_;  // until OnDone
  SharedUse use_ ABSL_GUARDED_BY(mutex_);
  grpc::Status end_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_SERVER_STREAM_H_
