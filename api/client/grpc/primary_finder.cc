// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/primary_finder.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/client/grpc/request_error.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::client {

PrimaryFinder::PrimaryFinder(const LogClientOptions& options,
                             ChannelSecurity security)
    : options_(options),
      stubs_(std::move(security), options.answer_ms),
      search_(options.addresses, options.search,
              [this](uint64_t below) { return random_.Below(below); }) {}

int64_t PrimaryFinder::EndOf(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) {
    return std::numeric_limits<int64_t>::max();
  }
  constexpr absl::Duration kYears = absl::Hours(24 * 365 * 100);
  return Clock::Real().NowNanos() +
         absl::ToInt64Nanoseconds(std::min(timeout, kYears));
}

absl::StatusOr<PrimaryFinder::Primary> PrimaryFinder::Find(int64_t end_ns) {
  for (;;) {
    const int64_t now = Clock::Real().NowNanos();
    if (!step_) step_ = search_.Next(now);
    const PrimarySearch::Step step = *step_;
    {
      const int64_t rest_end = std::min(step.not_before_ns, end_ns);
      std::unique_lock lock(mutex_);
      changed_.wait_for(
          lock, std::chrono::nanoseconds(std::max<int64_t>(rest_end - now, 0)),
          [this] { return is_cancelled_.load(); });
    }
    if (is_cancelled_) return absl::CancelledError("the caller has cancelled");
    if (Clock::Real().NowNanos() >= end_ns) {
      return absl::DeadlineExceededError(absl::StrCat(
          "log ", options_.log, ": no primary was found in time. Last: ",
          last_said_, ". Call again to go on"));
    }
    step_.reset();
    Stub* const stub = stubs_.At(step.address);
    if (stub == nullptr) {  // a node has named it
      last_said_ = std::string(security().CheckAddress(step.address).message());
      search_.NotPrimary("");
      continue;
    }
    Primary primary = {.stub = stub, .status = {}};
    const grpc::Status asked = AskStatus(*stub, end_ns, &primary.status);
    if (asked.ok() && primary.status.is_primary()) {
      search_.Found();
      return primary;
    }
    ALPHEUS_RETURN_IF_ERROR(FinalError(asked));
    last_said_ =
        absl::StrCat("node ", step.address, ": ",
                     asked.ok() ? "it is not primary" : asked.error_message());
    search_.NotPrimary(asked.ok() ? primary.status.primary().address()
                                  : ErrorIn(asked).not_primary().address());
  }
}

bool PrimaryFinder::Begin(grpc::ClientContext* context, int64_t end_ns) {
  security().Authorize(context);
  const int64_t left_ns = end_ns - Clock::Real().NowNanos();
  context->set_deadline(
      gpr_time_from_nanos(std::max<int64_t>(left_ns, 1), GPR_TIMESPAN));
  const std::lock_guard lock(mutex_);
  if (is_cancelled_) return false;
  asking_ = context;
  return true;
}

void PrimaryFinder::End() {
  const std::lock_guard lock(mutex_);
  asking_ = nullptr;
}

grpc::Status PrimaryFinder::AskStatus(Stub& stub, int64_t end_ns,
                                      v1::GetStatusResponse* response) {
  v1::GetStatusRequest request;
  request.set_log(options_.log);
  const int64_t answer_end_ns = Clock::Real().NowNanos() + options_.answer_ns();
  return Call(&Stub::GetStatus, stub, request, std::min(answer_end_ns, end_ns),
              response);
}

void PrimaryFinder::Cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (asking_ != nullptr) asking_->TryCancel();
  changed_.notify_all();
}

}  // namespace alpheus::client
