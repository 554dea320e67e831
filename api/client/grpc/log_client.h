// SPDX-License-Identifier: Apache-2.0
// log_client: appends to a log of a cluster from a program on any machine, each
// record exactly once.
//
//   alpheus::client::LogClientOptions options;
//   options.addresses = {"10.0.0.1:7411", "10.0.0.2:7411", "10.0.0.3:7411"};
//   auto client = alpheus::client::LogClient::Start(options);
//   auto appended = (*client)->Append({.parts = {"hello"}});  // durable
//
// Idea: a thread of the client finds the primary, begins or resumes the client
// there, and keeps one stream to it. When the stream ends it finds the next
// primary. A request that was sent is sent again only after a primary has said
// that it was never appended. So callers see no fail-over, but for the time
// that it takes.
//
// Invariants:
//   LGC1. What is answered follows append_session.h (ASN1 to ASN4).
//   LGC2. A callback runs without a lock of the client, on a thread of gRPC or
//         of the client, one at a time.
// Thread safety: all members by many threads, except the destructor.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_H_
#define ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/client/append/append_session.h"
#include "api/client/locate/primary_search.h"

namespace alpheus::client {

struct LogClientOptions {
  // Nodes that may be primary, "host:port" of alpheusd --serve. At least one.
  std::vector<std::string> addresses;
  std::string log = "main";
  AppendLimits limits = {};
  SearchTimes search = {};
  // Bytes of payloads that one message has at most, unless it has one payload.
  size_t message_bytes_max = size_t{64} << 10;
  // Milliseconds that a node has to answer one question.
  uint32_t answer_ms = 2'000;
};

class LogClient {
 public:
  // Starts the client's thread. Does not wait for a primary. Errors:
  // InvalidArgument (no address); ResourceExhausted (no thread).
  static absl::StatusOr<std::unique_ptr<LogClient>> Start(
      LogClientOptions options);
  // Ends. Requests without an answer get Cancelled: the outcome of those that
  // were sent is unknown. Flush first. May block for answer_ms.
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
  // answer); InvalidArgument; that for which the client has ended, such as
  // NotFound (no such log).
  absl::Status AppendAsync(Payload payload, AppendCallback callback);
  // Waits until all requests have their answers. Errors: DeadlineExceeded.
  absl::Status Flush(absl::Duration timeout = absl::InfiniteDuration());

 private:
  class Driver;
  explicit LogClient(std::shared_ptr<Driver> driver);

  std::shared_ptr<Driver> driver_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_H_
