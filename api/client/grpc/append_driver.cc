// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/append_driver.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/client/grpc/places.h"
#include "api/client/grpc/request_error.h"
#include "log/base/clock.h"
#include "log/base/thread_token.h"

namespace alpheus::client {
namespace {

using State = AppendSession::State;

// So often a client is taken over by others before it gives up. Its own lost
// message may do so once.
constexpr int kSupersededMax = 3;

std::optional<Place> FirstOf(const v1::Run& run) {
  if (!run.has_first()) return std::nullopt;
  return PlaceOf(run.first());
}

// Draws the key of a client.
std::string KeyBy(RandomSource& random) {
  const std::array<uint64_t, 2> words = {random.Next(), random.Next()};
  std::string key(sizeof(words), 0);
  std::memcpy(key.data(), words.data(), sizeof(words));
  return key;
}

absl::Status StatusOf(int code, const std::string& message) {
  return {static_cast<absl::StatusCode>(code), message};
}

}  // namespace

AppendDriver::AppendDriver(LogClientOptions options, ChannelSecurity security)
    : options_(std::move(options)),
      key_(KeyBy(random_)),
      stubs_(std::move(security), options_.answer_ms),
      session_(options_.limits),
      search_(options_.addresses, options_.search,
              [this](uint64_t below) { return random_.Below(below); }) {}

absl::Status AppendDriver::Start() {
  return thread_.Start([this] { Run(); });
}

void AppendDriver::Stop() {
  {
    const Lock lock(mutex_);
    is_ending_ = true;
    if (asking_ != nullptr) asking_->TryCancel();
    if (call_ != nullptr) {
      session_.unanswered() == 0 ? call_->Close() : call_->Cancel();
    }
    changed_.notify_all();
  }
  thread_.Join();
  {
    const Lock lock(mutex_);
    session_.End(absl::CancelledError("the client ends; the request may be in "
                                      "the log or not"),
                 absl::CancelledError("the client ends; it was never sent"));
  }
  RunCallbacks();
}

absl::Status AppendDriver::Append(Payload payload, AppendCallback callback) {
  const size_t bytes = payload.bytes();
  if (bytes > kRequestBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a request of ", bytes,
                     " bytes: the service takes at most ", kRequestBytesMax,
                     ", and a log often less (max_payload_bytes of its "
                     "status)"));
  }
  const Lock lock(mutex_);
  const auto taken = session_.Append(
      std::move(payload), [this, callback = std::move(callback)](
                              absl::StatusOr<Appended> answer) mutable {
        ++unheard_;
        answered_.push_back({std::move(callback), std::move(answer)});
      });
  if (!taken.ok()) return taken.status();
  // RunCallbacks sends what its callbacks append.
  const bool waits = calling_ == ThreadToken() &&
                     session_.unsent_bytes() < options_.message_bytes_max;
  if (call_ != nullptr && !waits) call_->Send();
  return absl::OkStatus();
}

absl::Status AppendDriver::Flush(absl::Duration timeout) {
  const auto is_done = [this] {
    return session_.unanswered() == 0 && unheard_ == 0;
  };
  Lock lock(mutex_);
  if (timeout == absl::InfiniteDuration()) {
    heard_.wait(lock, is_done);
    return absl::OkStatus();
  }
  if (heard_.wait_for(lock, absl::ToChronoNanoseconds(timeout), is_done)) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(
      absl::StrCat(session_.unanswered(), " requests have no answer yet"));
}

uint64_t AppendDriver::UnknownOutcomes() {
  const Lock lock(mutex_);
  return session_.unknown_outcomes();
}

std::string AppendDriver::LastSaid() {
  const Lock lock(mutex_);
  return last_said_;
}

void AppendDriver::RunCallbacks() {
  Lock lock(mutex_);
  if (calling_ != 0) return;  // another thread runs them
  calling_ = ThreadToken();
  std::vector<Answered> together;
  while (!answered_.empty()) {
    together.swap(answered_);
    lock.unlock();
    for (Answered& one : together) {
      if (one.callback) one.callback(std::move(one.answer));
    }
    const size_t heard = together.size();
    together.clear();
    lock.lock();
    unheard_ -= heard;
    if (call_ != nullptr) call_->Send();
  }
  calling_ = 0;
  heard_.notify_all();
}

// --- The thread --------------------------------------------------------------

void AppendDriver::Run() {
  for (;;) {
    Stub* const stub = FindPrimary();
    RunCallbacks();
    if (stub == nullptr) return;
    Serve(*stub);
    const bool is_closing = [this] {
      const Lock lock(mutex_);
      return is_ending_ && session_.state() == State::kLost &&
             session_.unanswered() == 0;
    }();
    if (is_closing) Close(*stub);
  }
}

AppendDriver::Stub* AppendDriver::FindPrimary() {
  for (;;) {
    PrimarySearch::Step step;
    {
      Lock lock(mutex_);
      const int64_t now = Clock::Real().NowNanos();
      step = search_.Next(now);
      changed_.wait_for(lock,
                        std::chrono::nanoseconds(step.not_before_ns - now),
                        [this] { return is_ending_; });
      if (is_ending_) return nullptr;
    }
    Stub* const stub = stubs_.At(step.address);
    if (stub == nullptr) {  // a node has named it
      const Lock lock(mutex_);
      last_said_ =
          std::string(stubs_.security().CheckAddress(step.address).message());
      search_.NotPrimary("");
      continue;
    }
    const grpc::Status begun = Begin(*stub);
    const Lock lock(mutex_);
    if (session_.state() == State::kEnded) return nullptr;
    if (begun.ok()) {
      search_.Found();
      return stub;
    }
    last_said_ =
        absl::StrCat("node ", step.address, ": ", begun.error_message());
    search_.NotPrimary(ErrorIn(begun).not_primary().address());
  }
}

grpc::Status AppendDriver::Begin(Stub& stub) {
  const bool is_new = [this] {
    const Lock lock(mutex_);
    session_.Lost();
    return session_.state() == State::kNew;
  }();
  const grpc::Status begun = is_new ? Open(stub) : Resume(stub);
  switch (begun.error_code()) {
    // No other primary takes the client, either.
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED: {
      const Lock lock(mutex_);
      End(StatusOf(begun.error_code(), begun.error_message()));
      break;
    }
    default:
      break;
  }
  return begun;
}

template <class Request, class Response>
grpc::Status AppendDriver::Ask(
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    Stub& stub, const Request& request, Response* response) {
  grpc::ClientContext context;
  stubs_.security().Authorize(&context);
  context.set_deadline(gpr_time_from_millis(options_.answer_ms, GPR_TIMESPAN));
  {
    const Lock lock(mutex_);
    if (is_ending_) return {grpc::StatusCode::CANCELLED, "the client ends"};
    asking_ = &context;
  }
  const grpc::Status status = (stub.*method)(&context, request, response);
  const Lock lock(mutex_);
  asking_ = nullptr;
  return status;
}

grpc::Status AppendDriver::Open(Stub& stub) {
  v1::OpenClientRequest request;
  request.set_log(options_.log);
  // Each time the same: an answer may have been lost.
  request.set_key(key_);
  v1::OpenClientResponse response;
  const grpc::Status status = Ask(&Stub::OpenClient, stub, request, &response);
  const Lock lock(mutex_);
  if (status.ok()) {
    session_.Opened(PlaceOf(response.client()), response.epoch());
  }
  return status;
}

grpc::Status AppendDriver::Resume(Stub& stub) {
  v1::ResumeClientRequest request;
  request.set_log(options_.log);
  {
    const Lock lock(mutex_);
    SetPlace(session_.client(), request.mutable_client());
    request.set_lowest_unanswered(session_.lowest_unanswered());
    request.set_last_epoch(session_.last_epoch());
  }
  v1::ResumeClientResponse response;
  const grpc::Status status =
      Ask(&Stub::ResumeClient, stub, request, &response);
  if (!status.ok()) return status;
  std::vector<std::pair<uint64_t, Place>> places;
  for (const v1::Run& run : response.places()) {
    for (uint64_t i = 0; run.has_first() && i < run.count(); ++i) {
      places.emplace_back(run.first_sequence() + i,
                          Place{run.first().epoch(), run.first().lsn() + i});
    }
  }
  const Lock lock(mutex_);
  session_.Resumed(response.epoch(), response.resumption(),
                   response.last_sequence(), places);
  if (response.ended()) {
    return {grpc::StatusCode::NOT_FOUND,
            "the client was closed by another process"};
  }
  return status;
}

void AppendDriver::Serve(Stub& stub) {
  Lock lock(mutex_);
  if (is_ending_) {
    session_.Lost();
    return;
  }
  v1::AppendStreamRequest::Begin begin;
  begin.set_log(options_.log);
  begin.set_epoch(session_.epoch());
  SetPlace(session_.client(), begin.mutable_client());
  begin.set_durability(DurabilityOf(options_.durability));
  begin.set_resumption(session_.resumption());
  last_admitted_.reset();
  room_rest_.BeginAgain();
  AppendCall call(*this, stub, stubs_.security(), begin);
  call_ = &call;
  // Callers don't wake the thread: it looks at the stream now and then (ADR3).
  const auto look_every = std::chrono::nanoseconds(
      1 + std::min(options_.stall_ns(), options_.answer_ns()) / 4);
  while (!call.is_done()) {
    const auto is_called = [&] { return call.is_done() || has_no_room_; };
    changed_.wait_for(lock, look_every, is_called);
    if (has_no_room_) {
      changed_.wait_for(lock, room_rest_.Take(),
                        [&] { return call.is_done(); });
      has_no_room_ = false;
      call.Send();
    }
    if (call.CancelIfStalled(options_.stall_ns(), options_.answer_ns())) {
      search_.NotPrimary("");
    }
  }
  call_ = nullptr;
  session_.Lost(last_admitted_);
}

void AppendDriver::Close(Stub& stub) {
  v1::CloseClientRequest request;
  request.set_log(options_.log);
  {
    const Lock lock(mutex_);
    request.set_epoch(session_.epoch());
    SetPlace(session_.client(), request.mutable_client());
  }
  grpc::ClientContext context;
  stubs_.security().Authorize(&context);
  context.set_deadline(gpr_time_from_millis(options_.answer_ms, GPR_TIMESPAN));
  v1::CloseClientResponse response;
  stub.CloseClient(&context, request, &response);
}

void AppendDriver::End(const absl::Status& why) {
  session_.End(absl::AbortedError(absl::StrCat(
                   "the request may be in the log or not: ", why.message())),
               why);
}

// --- AppendCall::Owner -------------------------------------------------------

std::optional<Sending> AppendDriver::NextToSend() {
  if (has_no_room_ || !session_.HasToSend()) return std::nullopt;
  return session_.TakeToSend(options_.message_bytes_max);
}

bool AppendDriver::Take(const v1::AppendStreamResponse& answers) {
  for (const v1::Run& run : answers.done()) {
    session_.Done(run.first_sequence(), run.count(), FirstOf(run));
    superseded_ = 0;
    search_.Answered();
  }
  for (const auto& refusal : answers.refused()) {
    if (!TakeRefusal(refusal)) return false;
  }
  if (!has_no_room_ && !answers.done().empty()) room_rest_.BeginAgain();
  if (answers.has_last_admitted()) last_admitted_ = answers.last_admitted();
  return true;
}

bool AppendDriver::TakeRefusal(
    const v1::AppendStreamResponse::Refusal& refusal) {
  const v1::RequestError& error = refusal.error();
  const bool has_no_room =
      refusal.code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  if (error.has_out_of_order() || has_no_room) {
    if (has_no_room && !std::exchange(has_no_room_, true)) {
      changed_.notify_all();
    }
    session_.SetBack(refusal.sequence());
    return true;
  }
  if (error.has_superseded() && ++superseded_ > kSupersededMax) {
    End(absl::FailedPreconditionError(
        "another process goes on with this client"));
    return false;
  }
  // Another primary, or another resumption.
  if (error.has_superseded() || error.has_wrong_epoch() ||
      error.has_not_primary()) {
    return false;
  }
  session_.Refused(refusal.sequence(),
                   StatusOf(refusal.code(), refusal.message()));
  return true;
}

}  // namespace alpheus::client
