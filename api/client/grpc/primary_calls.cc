// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/primary_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/client/grpc/places.h"
#include "api/client/grpc/request_error.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::client {
namespace {

// A record that nobody forces is waited for, so a call may take longer than an
// answer. A node that is gone is left after so many times answer_ms.
constexpr int64_t kPatientTimes = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<PrimaryCalls>> PrimaryCalls::Start(
    LogClientOptions options) {
  ALPHEUS_ASSIGN_OR_RETURN(
      ChannelSecurity security,
      ChannelSecurity::Load(options.security, options.addresses));
  return std::unique_ptr<PrimaryCalls>(
      new PrimaryCalls(std::move(options), std::move(security)));
}

PrimaryCalls::PrimaryCalls(LogClientOptions options, ChannelSecurity security)
    : options_(std::move(options)), finder_(options_, std::move(security)) {}

template <class Request, class Response>
absl::StatusOr<Response> PrimaryCalls::Ask(
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    Request request, absl::Duration timeout) {
  const int64_t end_ns = PrimaryFinder::EndOf(timeout);
  request.set_log(options_.log);
  for (;;) {
    if (primary_ == nullptr) {
      ALPHEUS_ASSIGN_OR_RETURN(const PrimaryFinder::Primary found,
                               finder_.Find(end_ns));
      primary_ = found.stub;
    }
    const int64_t now_ns = Clock::Real().NowNanos();
    const int64_t try_end_ns =
        std::min(end_ns, now_ns + kPatientTimes * options_.answer_ns());
    Response response;
    const grpc::Status status =
        finder_.Call(method, *primary_, request, try_end_ns, &response);
    if (status.ok()) {
      finder_.Answered();
      return response;
    }
    primary_ = nullptr;
    finder_.NotPrimary(ErrorIn(status).not_primary().address());
    ALPHEUS_RETURN_IF_ERROR(FinalError(status));
    if (Clock::Real().NowNanos() >= end_ns) {
      return absl::DeadlineExceededError(absl::StrCat(
          "log ", options_.log,
          ": no answer came in time. Last: ", status.error_message()));
    }
  }
}

absl::StatusOr<uint64_t> PrimaryCalls::Force(const Place& place,
                                             absl::Duration timeout) {
  v1::ForceRequest request;
  SetPlace(place, request.mutable_place());
  ALPHEUS_ASSIGN_OR_RETURN(const v1::ForceResponse response,
                           Ask(&Stub::Force, std::move(request), timeout));
  return response.durable_lsn();
}

absl::StatusOr<uint64_t> PrimaryCalls::WaitDurable(const Place& place,
                                                   absl::Duration timeout) {
  v1::WaitDurableRequest request;
  SetPlace(place, request.mutable_place());
  ALPHEUS_ASSIGN_OR_RETURN(
      const v1::WaitDurableResponse response,
      Ask(&Stub::WaitDurable, std::move(request), timeout));
  return response.durable_lsn();
}

absl::StatusOr<Exposure> PrimaryCalls::GetExposure(absl::Duration timeout) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const v1::GetExposureResponse response,
      Ask(&Stub::GetExposure, v1::GetExposureRequest(), timeout));
  return Exposure{response.records(), response.records_max()};
}

absl::StatusOr<LogState> PrimaryCalls::GetState(absl::Duration timeout) {
  ALPHEUS_ASSIGN_OR_RETURN(const PrimaryFinder::Primary found,
                           finder_.Find(PrimaryFinder::EndOf(timeout)));
  primary_ = found.stub;
  return LogState{.epoch = found.status.epoch(),
                  .head_lsn = found.status.head_lsn(),
                  .durable_lsn = found.status.durable_lsn(),
                  .next_lsn = found.status.next_lsn(),
                  .max_payload_bytes = found.status.max_payload_bytes(),
                  .clients = found.status.clients()};
}

absl::StatusOr<uint64_t> PrimaryCalls::CleanupThrough(uint64_t lsn,
                                                      absl::Duration timeout) {
  v1::CleanupRequest request;
  request.set_through_lsn(lsn);
  ALPHEUS_ASSIGN_OR_RETURN(const v1::CleanupResponse response,
                           Ask(&Stub::Cleanup, std::move(request), timeout));
  return response.head_lsn();
}

}  // namespace alpheus::client
