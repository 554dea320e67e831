// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/append_call.h"

#include <string>
#include <utility>

#include "log/base/clock.h"

namespace alpheus::client {
namespace {

void Set(const Payload& payload, v1::Payload* out) {
  out->set_tag(payload.tag);
  if (payload.expected_lsn) out->set_expected_lsn(*payload.expected_lsn);
  out->set_only_if_last(payload.only_if_last);
  if (payload.parts.size() == 1) {
    out->set_data(payload.parts.front());
    return;
  }
  for (const std::string& part : payload.parts) out->add_batch(part);
}

}  // namespace

AppendCall::AppendCall(Owner& owner, v1::LogService::Stub& stub,
                       const ChannelSecurity& security,
                       const v1::AppendStreamRequest::Begin& begin)
    : owner_(owner) {
  security.Authorize(&context_);
  *request_.mutable_begin() = begin;
  stub.async()->AppendStream(&context_, this);
  // Callers begin writes, too.
  AddHold();
  is_writing_ = true;
  StartWrite(&request_);
  StartRead(&response_);
  StartCall();
}

void AppendCall::Send() {
  if (is_writing_ || is_closing_) return;
  const bool was_awaiting = owner_.IsAwaiting();
  const std::optional<Sending> sending = owner_.NextToSend();
  if (!sending) return;
  if (!was_awaiting) owed_since_ns_ = Clock::Real().NowNanos();
  v1::AppendStreamRequest::Requests* const requests =
      request_.mutable_requests();
  requests->Clear();
  requests->mutable_first()->set_sequence(sending->first_sequence);
  requests->mutable_first()->set_lowest_unanswered(sending->lowest_unanswered);
  for (const Payload* const payload : sending->payloads) {
    Set(*payload, requests->add_payloads());
  }
  is_writing_ = true;
  StartWrite(&request_);
}

void AppendCall::Close() {
  if (std::exchange(is_closing_, true)) return;
  closed_at_ns_ = Clock::Real().NowNanos();
  if (!is_writing_) EndWrites();
}

void AppendCall::Cancel() {
  context_.TryCancel();
  Close();
}

bool AppendCall::CancelIfStalled(int64_t stall_ns, int64_t answer_ns) {
  if (is_done_) return false;
  const int64_t now_ns = Clock::Real().NowNanos();
  const bool has_stalled =
      is_closing_ ? now_ns - closed_at_ns_ >= answer_ns
                  : owner_.IsAwaiting() && now_ns - owed_since_ns_ >= stall_ns;
  if (has_stalled) Cancel();
  return has_stalled;
}

void AppendCall::EndWrites() {
  StartWritesDone();
  RemoveHold();
}

void AppendCall::OnWriteDone(bool ok) {
  const std::lock_guard lock(owner_.mutex());
  is_writing_ = false;
  if (!ok) {
    if (!std::exchange(is_closing_, true))
      closed_at_ns_ = Clock::Real().NowNanos();
    RemoveHold();
  } else if (is_closing_) {
    EndWrites();
  } else {
    Send();
  }
}

void AppendCall::OnReadDone(bool ok) {
  {
    const std::lock_guard lock(owner_.mutex());
    if (!ok) {
      Close();
      return;
    }
    owed_since_ns_ = Clock::Real().NowNanos();
    if (!owner_.Take(response_)) {
      Cancel();
    } else if (response_.has_last_admitted()) {
      Close();
    } else {
      Send();
    }
    StartRead(&response_);
  }
  owner_.OnTaken();
}

void AppendCall::OnDone(const grpc::Status& /*status*/) {
  const std::lock_guard lock(owner_.mutex());
  is_done_ = true;
  owner_.OnEnded();
}

}  // namespace alpheus::client
