// SPDX-License-Identifier: Apache-2.0
#include "bench/service/grpc/service_calls.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/v1/log_service.grpc.pb.h"

namespace alpheus::bench::service {
namespace {

constexpr int kAnswerMillis = 10'000;

absl::Status StatusOf(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(status.error_message());
}

}  // namespace

struct ServiceCalls::Stub {
  std::unique_ptr<v1::LogService::Stub> calls;

  // Sets the time that a call may take.
  static void Limit(grpc::ClientContext& context) {
    context.set_deadline(gpr_time_from_millis(kAnswerMillis, GPR_TIMESPAN));
  }

  absl::StatusOr<v1::GetStatusResponse> GetStatus(
      const std::string& log) const {
    grpc::ClientContext context;
    Limit(context);
    v1::GetStatusRequest request;
    request.set_log(log);
    v1::GetStatusResponse response;
    const absl::Status status =
        StatusOf(calls->GetStatus(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
};

ServiceCalls::ServiceCalls(const std::string& address, std::string log)
    : log_(std::move(log)),
      stub_(new Stub{v1::LogService::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))}) {}

ServiceCalls::~ServiceCalls() = default;

absl::StatusOr<bool> ServiceCalls::IsPrimary() const {
  const auto status = stub_->GetStatus(log_);
  if (!status.ok()) return status.status();
  return status->is_primary();
}

absl::StatusOr<uint64_t> ServiceCalls::DurableLsn() const {
  const auto status = stub_->GetStatus(log_);
  if (!status.ok()) return status.status();
  return status->durable_lsn();
}

absl::Status ServiceCalls::Cleanup(uint64_t through_lsn) const {
  grpc::ClientContext context;
  Stub::Limit(context);
  v1::CleanupRequest request;
  request.set_log(log_);
  request.set_through_lsn(through_lsn);
  v1::CleanupResponse response;
  return StatusOf(stub_->calls->Cleanup(&context, request, &response));
}

}  // namespace alpheus::bench::service
