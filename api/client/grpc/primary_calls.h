// SPDX-License-Identifier: Apache-2.0
// primary_calls: asks the primary of a log one thing at a time, wherever it is.
//
//   auto calls = alpheus::client::PrimaryCalls::Start(options);
//   auto durable = (*calls)->Force(*appended.place, absl::Seconds(5));
//
// Idea: a call that was lost with its primary is made again at the next one. So
// only calls are here that may be made twice.
//
// Invariants:
//   PRC1. A place names one record: where a later epoch has given its LSN to
//         another one, the call says so, and never answers for that one.
// Thread safety: one thread at a time, except Cancel. Has no thread: calls
// block.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_GRPC_PRIMARY_CALLS_H_
#define ALPHEUS_API_CLIENT_GRPC_PRIMARY_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/client/append/append_session.h"
#include "api/client/grpc/channel_security.h"
#include "api/client/grpc/log_client_options.h"
#include "api/client/grpc/primary_finder.h"

namespace alpheus::client {

// Records that a crash of the primary may take.
struct Exposure {
  uint64_t records = 0;      // now
  uint64_t records_max = 0;  // ever
};

// State of a log, as its primary says.
struct LogState {
  uint64_t epoch = 0;
  uint64_t head_lsn = 0;     // oldest record that is not cleaned
  uint64_t durable_lsn = 0;  // newest durable one
  uint64_t next_lsn = 0;     // of the next record
  uint64_t max_payload_bytes = 0;
  uint64_t clients = 0;  // that have begun and not ended
};

// All calls wait for as long as `timeout`. Errors of each: DeadlineExceeded (no
// primary has answered); NotFound (no such log); those that say that no node
// lets this program ask.
class PrimaryCalls {
 public:
  // Does not connect yet. Errors: InvalidArgument (no address); as
  // ChannelSecurity::Load.
  static absl::StatusOr<std::unique_ptr<PrimaryCalls>> Start(
      LogClientOptions options);

  // Makes a record durable, and all before it. Returns the newest durable LSN.
  // Errors: OutOfRange (the record is not in the log: it was lost before it was
  // durable, or was cleaned).
  absl::StatusOr<uint64_t> Force(const Place& place, absl::Duration timeout);
  // Waits until a record is durable. Returns, and errors, as Force.
  absl::StatusOr<uint64_t> WaitDurable(const Place& place,
                                       absl::Duration timeout);
  absl::StatusOr<Exposure> GetExposure(absl::Duration timeout);
  absl::StatusOr<LogState> GetState(absl::Duration timeout);
  // Cleans records up to this one, which are no longer needed. Returns the LSN
  // of the oldest that is left. Errors: OutOfRange (it is not durable).
  absl::StatusOr<uint64_t> CleanupThrough(uint64_t lsn, absl::Duration timeout);
  // Has a call that waits return Cancelled, and each later one. By any thread.
  void Cancel() { finder_.Cancel(); }

 private:
  using Stub = PrimaryFinder::Stub;

  PrimaryCalls(LogClientOptions options, ChannelSecurity security);

  // Asks the primary, and the next one if that is lost, until one answers.
  template <class Request, class Response>
  absl::StatusOr<Response> Ask(
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      Request request, absl::Duration timeout);

  const LogClientOptions options_;
  PrimaryFinder finder_;
  Stub* primary_ = nullptr;  // none is known
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_PRIMARY_CALLS_H_
