// SPDX-License-Identifier: Apache-2.0
// append_driver: brings the requests of one client of a log to its primary, and
// the answers back.
//
// Idea: a thread goes from primary to primary. It finds one, opens or resumes
// the client there, and keeps one stream to it (append_call.h). Callers hand
// their requests to the session, and to the stream if there is one. gRPC's
// threads hand what the stream brings to the session.
//
//   caller            Append -> session -> stream -> socket
//   gRPC's thread     socket -> session -> callbacks
//   driver's thread   find, open or resume; watch the stream; close
//
// Invariants:
//   ADR1. Answers follow append_session.h (ASN1 to ASN5).
//   ADR2. A callback runs without the lock, one at a time, on gRPC's thread or
//         on the driver's.
//   ADR3. A stream whose primary owes an answer and says nothing for stall_ms
//         is cancelled: a process that stands still ends no connection.
//   ADR4. A primary that brings no answer is asked again only after a rest
//         (PSR3), so that a stream that always ends keeps no core busy.
//   ADR5. At its end a client that has all its answers is closed in the log, if
//         its primary can be reached.
//   ADR6. Requests that callbacks append are sent together, once the callbacks
//         of all answers that came together have run, or a message is full. So
//         a client that sends the next request at each answer has messages as
//         large as its answers.
//   ADR7. A client begins by one key, however often it asks: an answer that is
//         lost takes no second place in the log's table (SLG10, service_log.h).
// Thread safety: all members by many threads. Start and Stop once each.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_GRPC_APPEND_DRIVER_H_
#define ALPHEUS_API_CLIENT_GRPC_APPEND_DRIVER_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/append/append_session.h"
#include "api/client/append/room_rest.h"
#include "api/client/grpc/append_call.h"
#include "api/client/grpc/channel_security.h"
#include "api/client/grpc/log_client_options.h"
#include "api/client/grpc/node_stubs.h"
#include "api/client/locate/primary_search.h"
#include "api/wiring/background_thread.h"
#include "log/base/random.h"

namespace alpheus::client {

class AppendDriver final : private AppendCall::Owner {
 public:
  AppendDriver(LogClientOptions options, ChannelSecurity security);

  // Starts the thread. Errors: ResourceExhausted (no thread).
  absl::Status Start();
  // Ends. Requests without an answer get Cancelled. A client that has all its
  // answers is closed in the log, if its primary says so within answer_ms.
  void Stop();

  // Takes a request. Errors: see LogClient::AppendAsync.
  absl::Status Append(Payload payload, AppendCallback callback);
  // Returns what kept the thread from a primary last, for people; empty:
  // nothing yet.
  std::string LastSaid();
  // As LogClient::UnknownOutcomes.
  uint64_t UnknownOutcomes();
  // Waits until all requests have their answers, and all callbacks have run.
  // Errors: DeadlineExceeded.
  absl::Status Flush(absl::Duration timeout);

 private:
  using Stub = v1::LogService::Stub;
  using Lock = std::unique_lock<std::mutex>;

  struct Answered {
    AppendCallback callback;
    absl::StatusOr<Appended> answer;
  };

  // --- The thread ---

  void Run();
  // Finds a primary, and opens or resumes the client there. Returns its node;
  // null: the client ends.
  Stub* FindPrimary();
  grpc::Status Begin(Stub& stub);
  grpc::Status Open(Stub& stub);
  grpc::Status Resume(Stub& stub);
  // Keeps a stream to this primary until it ends.
  void Serve(Stub& stub);
  // Closes the client in the log. If that fails, the log keeps a few bytes of
  // it.
  void Close(Stub& stub);
  // Asks a node one thing. Stop cancels it, unless the client closes.
  template <class Request, class Response>
  grpc::Status Ask(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                const Request&, Response*),
                   Stub& stub, const Request& request, Response* response);
  // Runs the callbacks of requests that were answered (ADR2), and sends what
  // they have appended (ADR6).
  void RunCallbacks();

  // --- AppendCall::Owner; under the lock ---

  std::mutex& mutex() override { return mutex_; }
  std::optional<Sending> NextToSend() override;
  bool IsAwaiting() const override { return session_.IsAwaiting(); }
  bool Take(const v1::AppendStreamResponse& answers) override;
  void OnTaken() override { RunCallbacks(); }
  void OnEnded() override { changed_.notify_all(); }

  bool TakeRefusal(const v1::AppendStreamResponse::Refusal& refusal);
  // Ends the session: nothing is sent any more.
  void End(const absl::Status& why);

  const LogClientOptions options_;
  EntropyRandom random_;
  const std::string key_;  // by which its client begins
  NodeStubs stubs_;        // of the thread
  BackgroundThread thread_;

  std::mutex mutex_;                 // guards all below
  std::condition_variable changed_;  // for the thread
  std::condition_variable heard_;    // for Flush: callbacks have run
  AppendSession session_;
  PrimarySearch search_;
  AppendCall* call_ = nullptr;
  grpc::ClientContext* asking_ = nullptr;  // a question that is under way
  bool is_ending_ = false;
  int superseded_ = 0;                     // since the last answer
  std::optional<uint64_t> last_admitted_;  // as this stream's primary has said
  bool has_no_room_ = false;        // the log, so nothing is sent for a while
  RoomRest room_rest_;              // how long
  std::vector<Answered> answered_;  // whose callbacks were not begun
  size_t unheard_ = 0;              // callbacks that have not run to their end
  // Token of the thread that runs callbacks; 0: none does.
  uint32_t calling_ = 0;
  std::string last_said_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_APPEND_DRIVER_H_
