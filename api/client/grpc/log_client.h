// SPDX-License-Identifier: Apache-2.0
// log_client: appends to a log of a cluster from a program on any machine, each
// record exactly once.
//
//   alpheus::client::LogClientOptions options;
//   options.addresses = {"10.0.0.1:7411", "10.0.0.2:7411", "10.0.0.3:7411"};
//   auto client = alpheus::client::LogClient::Start(options);
//   auto appended = (*client)->Append({.parts = {"hello"}});  // durable
//
// Idea: a thread of the client finds the primary, opens or resumes the client
// there, and keeps one stream to it. When the stream ends it finds the next
// primary. A request that was sent is sent again only after a primary has said
// that it was never appended. So callers see no fail-over, but for the time
// that it takes.
//
// Invariants:
//   LGC1. Answers follow append_session.h (ASN1 to ASN5).
//   LGC2. A callback runs without a lock of the client, on a thread of gRPC or
//         of the client, one at a time.
// Thread safety: all members by many threads, except the destructor. Append,
// Flush and the destructor not in a callback, which would wait for itself.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_H_
#define ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_H_

#include <coroutine>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/client/append/append_session.h"
#include "api/client/grpc/log_client_options.h"

namespace alpheus::client {

class AppendDriver;
class LogClient;

// co_await gives the answer to one request, as AppendCallback gets it, or the
// error for which it was not taken. The coroutine goes on as a callback does
// (LGC2). Lives in the awaiting expression.
class AppendAwaiter {
 public:
  AppendAwaiter(LogClient& client, Payload payload)
      : client_(client), payload_(std::move(payload)) {}
  AppendAwaiter(const AppendAwaiter&) = delete;
  AppendAwaiter& operator=(const AppendAwaiter&) = delete;

  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<> caller);
  absl::StatusOr<Appended> await_resume() { return std::move(answer_); }

 private:
  LogClient& client_;
  Payload payload_;
  absl::StatusOr<Appended> answer_ = absl::UnknownError("not answered");
};

class LogClient {
 public:
  // Starts the client's thread. Does not wait for a primary. Errors:
  // InvalidArgument (no address); as ChannelSecurity::Load; ResourceExhausted
  // (no thread).
  static absl::StatusOr<std::unique_ptr<LogClient>> Start(
      LogClientOptions options);
  // Ends. Requests without an answer get Cancelled: the outcome of those that
  // were sent is unknown. Flush first. A client that has all its answers is
  // closed in the log, so that it takes no room there. May block for a few
  // times answer_ms.
  ~LogClient();
  LogClient(const LogClient&) = delete;
  LogClient& operator=(const LogClient&) = delete;

  // Appends, and waits until the record is durable. Errors: those of
  // AppendCallback; ResourceExhausted (too much has no answer; nothing was
  // done); DeadlineExceeded (outcome unknown: it may be appended later).
  absl::StatusOr<Appended> Append(
      Payload payload, absl::Duration timeout = absl::InfiniteDuration());
  // Takes a request, and calls `callback` once it has its answer. Errors, after
  // which `callback` is not called: ResourceExhausted (try again after an
  // answer); InvalidArgument (more than kRequestBytesMax, or no part); that for
  // which the client has ended, such as NotFound (no such log).
  absl::Status AppendAsync(Payload payload, AppendCallback callback);
  // The same for a coroutine: `auto appended = co_await client->CoAppend(...)`.
  AppendAwaiter CoAppend(Payload payload);
  // Waits until all requests have their answers, and all callbacks have run.
  // Errors: DeadlineExceeded.
  absl::Status Flush(absl::Duration timeout = absl::InfiniteDuration());
  // Returns how many outcomes were unknown for a while, so far: a stream ended,
  // and its primary had not said what became of a request. The client has
  // resolved them since, or will. A primary that is drained leaves none.
  uint64_t UnknownOutcomes();

 private:
  explicit LogClient(std::unique_ptr<AppendDriver> driver);

  const std::unique_ptr<AppendDriver> driver_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_H_
