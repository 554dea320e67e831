// SPDX-License-Identifier: Apache-2.0
// append_stream: a stream of requests of one client, and their answers.
//
// Idea: one message is one group: it is judged and appended under one lock, is
// forced once, and its answers come together. They are written by the thread
// that learns that the group is durable, which is the log's own: no other one
// is woken between the last backup's ack and the socket.
//
//   client --message--> gRPC's thread: judge, append, begin the force
//                       log's thread:  ack of a backup, callback, write -->
//                       client
//
// At most one write is under way. Answers that come meanwhile are joined into
// the next one, so a busy stream has few messages, and an idle one no delay.
//
// Invariants:
//   APS1. At most kUnansweredMax requests are read whose answers have not left,
//         and those of one more message. So a client that does not read its
//         answers, or a log that stands still, takes bounded memory.
//   APS2. The last message of a stream that ends in good order says the highest
//         sequence that was admitted; all admitted requests were answered
//         before (P-Z3).
//   APS3. The stream has left the log once nothing more is read and all groups
//         are settled, whether or not its client reads.
//   APS4. A request that finds no room in the log, while records there are not
//         durable yet, or while the log holds reservations (its members
//         change), is judged again once that is over, and what comes behind it
//         waits. Only if nothing is under way it is refused. A stream that ends
//         meanwhile waits for nothing: what it has not admitted it never will.
//   APS5. A stream that has said its last message waits for its client's end,
//         and drops what still comes. Otherwise the end of a process would
//         close a connection with bytes that nobody read, and the kernel of the
//         client would drop the last message.
//   APS6. A message whose client may no longer append is not admitted: the
//         stream ends in good order (APS2), with that as its status (ACS2,
//         access.h).
//   APS7. Requests for which the rates of their token have nothing left are
//         refused, and so are those behind them in their message: each request
//         is counted once, however often it is judged (ACS5).
// Thread safety: gRPC's and the log's threads.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_GRPC_CALLS_APPEND_STREAM_H_
#define ALPHEUS_API_GRPC_CALLS_APPEND_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "alpheus/v1/log_service.pb.h"
#include "api/grpc/access/access.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/log_use.h"
#include "api/grpc/wire/call_error.h"
#include "api/service/clients/client_requests.h"
#include "api/service/log/log_counts.h"
#include "api/service/log/service_log.h"
#include "api/service/served/served_logs.h"
#include "api/wiring/task_thread.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/core/durability/persisted_by.h"

namespace alpheus::rpc {

class AppendStream final
    : public grpc::ServerBidiReactor<v1::AppendStreamRequest,
                                     v1::AppendStreamResponse>,
      public service::LogGuest,
      public std::enable_shared_from_this<AppendStream> {
 public:
  // A client has so many requests without an answer at most.
  static constexpr size_t kUnansweredMax = service::kPlacesMax;

  // Begins to read. The stream owns itself until it is done. `tasks` and
  // `counts` must outlive it, and `tasks` all logs.
  static AppendStream* Start(service::ServedLogs& logs, TaskThread& tasks,
                             CallCounts& counts, Permit permit);

 private:
  // Requests of one message that are answered together.
  struct Group {
    uint64_t first_sequence = 0;
    std::vector<service::Verdict> verdicts;
    // When it was appended, by CallCounts; 0: its stages are not timed.
    int64_t appended_ns = 0;
  };

  AppendStream(service::ServedLogs& logs, TaskThread& tasks, CallCounts& counts,
               Permit permit)
      : logs_(logs),
        tasks_(tasks),
        counts_(counts),
        permit_(std::move(permit)) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void OnDrain() override;

  // Take the message that was read. Return the error that ends the stream.
  std::optional<CallError> TakeBegin();
  std::optional<CallError> TakeRequests();
  // Judges what is left of the message, and appends it. If the log has no room,
  // the rest waits until what it has is durable (APS4).
  void JudgeRest();
  // Judges once, and answers. Returns what the log refused, if the rest is not
  // judged. Requires: the group is counted.
  std::optional<service::Finding> JudgeOnce(const SharedUse& use);
  // Answers all that is left of the message with a refusal. Requires: as above.
  void RefuseRest(const SharedUse& use, service::Finding finding);
  // Returns the verdicts on what is left of the message. Those that are missing
  // at the end, and `refused`, wait.
  std::vector<service::Verdict> Append(
      service::ServedLog& log, std::optional<service::Finding>* refused);
  // Has the rest judged later. Returns false if nothing is under way.
  bool WaitForRoom(const SharedUse& use);
  void OnRoom();
  // Returns how many of the next requests of the message, so many, the rates of
  // its token let in (APS7).
  size_t TakeFromRates(size_t count);
  // Returns how many more requests max_exposed may let in, by a look at the log
  // without its lock (SLG9 judges).
  size_t Admissible(service::ServedLog& log, size_t count) const;
  // Answers a group once it is settled, or as soon as it is accepted.
  void Answer(const SharedUse& use, Group group);
  void OnSettled(const Group& group, service::ServedLog& log,
                 const absl::Status& status);
  // Notes that a timed group is settled; its answer is not written yet.
  void NoteSettled(const Group& group, service::LogCounts& log)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RequestName NameOf(uint64_t sequence) const {
    return {client_, sequence, epoch_, epoch_};
  }
  void AddAnswers(const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads no more, and ends with this status once all is answered.
  void End(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does what can be done now: writes, reads, leaves the log, ends.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  service::ServedLogs& logs_;
  TaskThread& tasks_;
  CallCounts& counts_;
  std::shared_ptr<AppendStream> self_;  // until OnDone

  // Used by the thread that takes a message.
  Permit permit_;
  v1::AppendStreamRequest request_;
  size_t judged_ = 0;  // requests of it
  size_t paid_ = 0;    // of it, that were taken from the rates of its token
  // When it was read, if its first group is to be timed; else 0.
  int64_t read_ns_ = 0;
  bool has_begun_ = false;
  service::ClientId client_;
  Epoch epoch_;
  // Replicas that must have a record before it is answered; nullopt: none.
  std::optional<PersistedBy> stream_by_;
  std::optional<PersistedBy> by_;  // of the message that was read
  bool tells_accepted_ = false;
  uint64_t max_exposed_ = 0;
  uint64_t resumption_ = 0;

  Mutex mutex_;
  SharedUse use_ ABSL_GUARDED_BY(mutex_);
  v1::AppendStreamResponse writing_;  // gRPC's while is_writing_
  v1::AppendStreamResponse answers_ ABSL_GUARDED_BY(mutex_);
  // A timed group of answers_, and of writing_: when it was settled, or 0. Its
  // log's counts are those of all logs of the node, which outlive the stream.
  int64_t settled_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t writing_settled_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  service::LogCounts* log_counts_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t writing_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t answers_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t groups_ ABSL_GUARDED_BY(mutex_) = 0;  // not settled
  std::optional<uint64_t> last_admitted_ ABSL_GUARDED_BY(mutex_);
  grpc::Status end_ ABSL_GUARDED_BY(mutex_);
  bool has_answers_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A message was read, and not all of it is judged: no other one is read.
  bool is_taking_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_in_order_ ABSL_GUARDED_BY(mutex_) = true;  // its end
  bool is_broken_ ABSL_GUARDED_BY(mutex_) = false;   // nothing can be written
  bool has_client_ended_ ABSL_GUARDED_BY(mutex_) = false;  // it sends no more
  bool has_said_last_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_APPEND_STREAM_H_
