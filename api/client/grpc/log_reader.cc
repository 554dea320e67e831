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

absl::Status CancelledHere() {
  return absl::CancelledError("the reader was cancelled");
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::Start(
    LogClientOptions options, ReadOptions read) {
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
      finder_(options_, std::move(security)),
      next_lsn_(read_.from_lsn) {}

absl::StatusOr<std::optional<Record>> LogReader::Next(absl::Duration timeout) {
  const int64_t end_ns = PrimaryFinder::EndOf(timeout);
  for (;;) {
    if (finder_.is_cancelled()) return CancelledHere();
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
  ALPHEUS_ASSIGN_OR_RETURN(const PrimaryFinder::Primary primary,
                           finder_.Find(end_ns));
  BeginCall(*primary.stub);
  return absl::OkStatus();
}

void LogReader::BeginCall(Stub& stub) {
  if (read_.to_lsn != 0 && next_lsn_ > read_.to_lsn) {
    is_at_end_ = true;
    return;
  }
  std::unique_ptr<RecordCall> call;
  if (read_.follows) {
    v1::TailRequest::Begin begin;
    begin.set_log(options_.log);
    begin.set_from_lsn(next_lsn_);
    for (const uint32_t tag : read_.tags) begin.add_tags(tag);
    call =
        RecordCall::Tail(stub, finder_.security(), begin, read_.credit_bytes);
  } else {
    v1::ReadRequest request;
    request.set_log(options_.log);
    request.set_from_lsn(next_lsn_);
    request.set_to_lsn(read_.to_lsn);
    if (read_.consistency == Consistency::kLocal) {
      request.set_consistency(v1::CONSISTENCY_LOCAL);
    }
    for (const uint32_t tag : read_.tags) request.add_tags(tag);
    call = RecordCall::Read(stub, finder_.security(), request);
  }
  primary_ = &stub;
  const std::lock_guard lock(mutex_);
  call_ = std::move(call);
  if (finder_.is_cancelled()) call_->Cancel();
}

absl::Status LogReader::Await(int64_t end_ns) {
  const int64_t now = Clock::Real().NowNanos();
  const int64_t wait_ns =
      std::min(options_.stall_ns(), std::max<int64_t>(end_ns - now, 0));
  switch (call_->Await(nanoseconds(wait_ns))) {
    case RecordCall::State::kMessage:
      finder_.Answered();
      has_message_ = true;
      return absl::OkStatus();
    case RecordCall::State::kEnded: {
      const grpc::Status status = call_->status();
      DropCall();
      if (finder_.is_cancelled()) return CancelledHere();
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
  const grpc::Status asked = finder_.AskStatus(*primary_, kNever, &status);
  if (!asked.ok() || !status.is_primary()) {
    DropCall();
    finder_.NotPrimary(status.primary().address());
  }
  return absl::OkStatus();
}

absl::Status LogReader::FinalErrorOf(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::OUT_OF_RANGE) {
    head_lsn_ = ErrorIn(status).out_of_log().head_lsn();
  }
  return FinalError(status);
}

void LogReader::DropCall() {
  std::unique_ptr<RecordCall> call;
  const std::lock_guard lock(mutex_);
  call = std::move(call_);
}

void LogReader::Cancel() {
  finder_.Cancel();
  const std::lock_guard lock(mutex_);
  if (call_ != nullptr) call_->Cancel();
}

}  // namespace alpheus::client
