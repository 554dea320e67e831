// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/log_reader.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/client/grpc/places.h"
#include "api/client/grpc/request_error.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::client {
namespace {

using std::chrono::nanoseconds;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int64_t EndOf(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return kNever;
  return Clock::Real().NowNanos() + absl::ToInt64Nanoseconds(timeout);
}

absl::Status CancelledHere() {
  return absl::CancelledError("the reader was cancelled");
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::Start(
    LogClientOptions options, ReadOptions read) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError(
        "no address: name at least one node that serves the log");
  }
  if (read.follows && read.to_lsn != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a reader that follows the log has no last record; to_lsn "
                     "is ",
                     read.to_lsn));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      ChannelSecurity security,
      ChannelSecurity::Load(options.security, options.addresses));
  return std::unique_ptr<LogReader>(
      new LogReader(std::move(options), std::move(read), std::move(security)));
}

LogReader::LogReader(LogClientOptions options, ReadOptions read,
                     ChannelSecurity security)
    : options_(std::move(options)),
      read_(std::move(read)),
      stubs_(std::move(security)),
      search_(options_.addresses, options_.search,
              [this](uint64_t below) { return random_.Below(below); }),
      next_lsn_(read_.from_lsn),
      to_lsn_(read_.to_lsn) {}

absl::StatusOr<std::optional<Record>> LogReader::Next(absl::Duration timeout) {
  const int64_t end_ns = EndOf(timeout);
  for (;;) {
    if (is_cancelled_) return CancelledHere();
    if (has_message_) {
      if (std::optional<Record> record = TakeRecord()) return record;
      continue;
    }
    if (is_at_end_) return std::nullopt;
    if (call_ == nullptr) {
      ALPHEUS_RETURN_IF_ERROR(Connect(end_ns));
    } else {
      ALPHEUS_RETURN_IF_ERROR(Await(end_ns));
    }
  }
}

std::optional<Record> LogReader::TakeRecord() {
  const RecordCall::Records& records = call_->records();
  if (taken_ == records.size()) {
    next_lsn_ = std::max(next_lsn_, call_->next_lsn());
    has_message_ = false;
    taken_ = 0;
    call_->Release(std::exchange(taken_bytes_, 0));
    return std::nullopt;
  }
  const v1::Record& from = records.Get(taken_++);
  Record record;
  record.place = PlaceOf(from.place());
  record.client = PlaceOf(from.client());
  record.sequence = from.sequence();
  record.tag = from.tag();
  record.parts.assign(from.payloads().begin(), from.payloads().end());
  for (const std::string& part : record.parts) taken_bytes_ += part.size();
  next_lsn_ = record.place.lsn + 1;
  return record;
}

absl::Status LogReader::Connect(int64_t end_ns) {
  for (;;) {
    const int64_t now = Clock::Real().NowNanos();
    if (!step_) step_ = search_.Next(now);
    const PrimarySearch::Step step = *step_;
    {
      const int64_t rest_end = std::min(step.not_before_ns, end_ns);
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, nanoseconds(std::max<int64_t>(rest_end - now, 0)),
                        [this] { return is_cancelled_.load(); });
    }
    if (is_cancelled_) return CancelledHere();
    if (Clock::Real().NowNanos() >= end_ns) {
      return absl::DeadlineExceededError(absl::StrCat(
          "log ", options_.log, ": no primary was found in time. Last: ",
          last_said_, ". Read again to go on"));
    }
    step_.reset();
    Stub* const stub = stubs_.At(step.address);
    if (stub == nullptr) {  // a node has named it
      search_.NotPrimary("");
      continue;
    }
    v1::GetStatusResponse status;
    const grpc::Status asked = AskStatus(*stub, end_ns, &status);
    if (asked.ok() && status.is_primary()) {
      search_.Found();
      if (!read_.follows && to_lsn_ == 0) to_lsn_ = status.durable_lsn();
      BeginCall(*stub);
      return absl::OkStatus();
    }
    ALPHEUS_RETURN_IF_ERROR(FinalErrorOf(asked));
    last_said_ =
        absl::StrCat("node ", step.address, ": ",
                     asked.ok() ? "it is not primary" : asked.error_message());
    search_.NotPrimary(asked.ok() ? status.primary().address()
                                  : ErrorIn(asked).not_primary().address());
  }
}

void LogReader::BeginCall(Stub& stub) {
  if (!read_.follows && (to_lsn_ == 0 || next_lsn_ > to_lsn_)) {
    is_at_end_ = true;
    return;
  }
  std::unique_ptr<RecordCall> call;
  if (read_.follows) {
    v1::TailRequest::Begin begin;
    begin.set_log(options_.log);
    begin.set_from_lsn(next_lsn_);
    for (const uint32_t tag : read_.tags) begin.add_tags(tag);
    call = RecordCall::Tail(stub, stubs_.security(), begin, read_.credit_bytes);
  } else {
    v1::ReadRequest request;
    request.set_log(options_.log);
    request.set_from_lsn(next_lsn_);
    request.set_to_lsn(to_lsn_);
    for (const uint32_t tag : read_.tags) request.add_tags(tag);
    call = RecordCall::Read(stub, stubs_.security(), request);
  }
  primary_ = &stub;
  const std::lock_guard lock(mutex_);
  call_ = std::move(call);
  if (is_cancelled_) call_->Cancel();
}

absl::Status LogReader::Await(int64_t end_ns) {
  const int64_t now = Clock::Real().NowNanos();
  const int64_t wait_ns =
      std::min(options_.stall_ns(), std::max<int64_t>(end_ns - now, 0));
  switch (call_->Await(nanoseconds(wait_ns))) {
    case RecordCall::State::kMessage:
      search_.Answered();
      has_message_ = true;
      return absl::OkStatus();
    case RecordCall::State::kEnded: {
      const grpc::Status status = call_->status();
      DropCall();
      if (is_cancelled_) return CancelledHere();
      if (status.ok() && !read_.follows) is_at_end_ = true;
      return FinalErrorOf(status);
    }
    case RecordCall::State::kWaiting:
      break;
  }
  if (Clock::Real().NowNanos() >= end_ns) {
    return absl::DeadlineExceededError(absl::StrCat(
        "log ", options_.log, ": no record came in time, from LSN ", next_lsn_,
        " on; read again to go on"));
  }
  // LGR2.
  v1::GetStatusResponse status;
  const grpc::Status asked = AskStatus(*primary_, kNever, &status);
  if (!asked.ok() || !status.is_primary()) {
    DropCall();
    search_.NotPrimary(status.primary().address());
  }
  return absl::OkStatus();
}

absl::Status LogReader::FinalErrorOf(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OUT_OF_RANGE:
      head_lsn_ = ErrorIn(status).out_of_log().head_lsn();
      [[fallthrough]];
    case grpc::StatusCode::DATA_LOSS:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return {static_cast<absl::StatusCode>(status.error_code()),
              status.error_message()};
    default:
      return absl::OkStatus();
  }
}

grpc::Status LogReader::AskStatus(Stub& stub, int64_t end_ns,
                                  v1::GetStatusResponse* response) {
  grpc::ClientContext context;
  stubs_.security().Authorize(&context);
  const int64_t answer_ns =
      std::min(options_.answer_ns(), end_ns - Clock::Real().NowNanos());
  context.set_deadline(
      gpr_time_from_nanos(std::max<int64_t>(answer_ns, 1), GPR_TIMESPAN));
  v1::GetStatusRequest request;
  request.set_log(options_.log);
  {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) return {grpc::StatusCode::CANCELLED, "cancelled"};
    asking_ = &context;
  }
  const grpc::Status status = stub.GetStatus(&context, request, response);
  const std::lock_guard lock(mutex_);
  asking_ = nullptr;
  return status;
}

void LogReader::DropCall() {
  std::unique_ptr<RecordCall> call;
  const std::lock_guard lock(mutex_);
  call = std::move(call_);
}

void LogReader::Cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (asking_ != nullptr) asking_->TryCancel();
  if (call_ != nullptr) call_->Cancel();
  changed_.notify_all();
}

}  // namespace alpheus::client
