// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/log_client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/grpc/request_error.h"
#include "api/wiring/background_thread.h"
#include "log/base/clock.h"
#include "log/base/random.h"

namespace alpheus::client {
namespace {

using State = AppendSession::State;

// So often a client is taken over by others before it gives up. Its own lost
// message may do so once.
constexpr int kSupersededMax = 3;

// How long nothing is sent to a log that has no room.
constexpr std::chrono::milliseconds kRoomRest(20);

void SetPlace(const Place& place, v1::Place* out) {
  out->set_epoch(place.epoch);
  out->set_lsn(place.lsn);
}

Place PlaceOf(const v1::Place& place) { return {place.epoch(), place.lsn()}; }

std::optional<Place> FirstOf(const v1::Run& run) {
  if (!run.has_first()) return std::nullopt;
  return PlaceOf(run.first());
}

absl::Status StatusOf(int code, const std::string& message) {
  return {static_cast<absl::StatusCode>(code), message};
}

int64_t NowNanos() { return Clock::Real().NowNanos(); }

// Waits until `is_true`, or for so long. Returns what it is then.
template <class Condition>
bool WaitFor(std::condition_variable& changed,
             std::unique_lock<std::mutex>& lock, absl::Duration timeout,
             const Condition& is_true) {
  if (timeout == absl::InfiniteDuration()) {
    changed.wait(lock, is_true);
    return true;
  }
  return changed.wait_for(lock, absl::ToChronoNanoseconds(timeout), is_true);
}

}  // namespace

// The thread that goes from primary to primary, and what it shares with callers
// and with the stream.
class LogClient::Driver : public std::enable_shared_from_this<Driver> {
 public:
  explicit Driver(LogClientOptions options)
      : options_(std::move(options)),
        session_(options_.limits),
        search_(options_.addresses, options_.search,
                [this](uint64_t below) { return random_.Below(below); }) {}

  absl::Status Start() {
    return thread_.Start([this] { Run(); });
  }

  void Stop();
  absl::Status Append(Payload payload, AppendCallback callback);
  absl::Status Flush(absl::Duration timeout) {
    std::unique_lock lock(mutex_);
    const bool is_done = WaitFor(changed_, lock, timeout, [this] {
      return session_.unanswered() == 0 && unheard_ == 0;
    });
    if (is_done) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat(session_.unanswered(), " requests have no answer yet"));
  }

 private:
  class Stream;

  void Run();
  // Finds a primary, and begins or resumes there. Returns its node; null: the
  // client ends.
  v1::LogService::Stub* FindPrimary();
  v1::LogService::Stub& StubOf(const std::string& address);
  grpc::Status Begin(v1::LogService::Stub& stub);
  grpc::Status Open(v1::LogService::Stub& stub);
  grpc::Status Resume(v1::LogService::Stub& stub);
  // Returns whether another primary may take the client, after this error.
  bool MayGoOn(const grpc::Status& status);
  // Ends the session: nothing is sent any more.
  void End(const absl::Status& why);

  // Takes what a stream brought. Returns whether the stream is of use still.
  bool Take(const v1::AppendStreamResponse& answers);
  bool TakeRefusal(const v1::AppendStreamResponse::Refusal& refusal);
  // Runs the callbacks of requests that were answered (LGC2).
  void RunCallbacks();
  grpc::ClientContext& NewContext(std::optional<grpc::ClientContext>& context);

  const LogClientOptions options_;
  EntropyRandom random_;
  std::map<std::string, std::unique_ptr<v1::LogService::Stub>> stubs_;
  BackgroundThread thread_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  AppendSession session_;
  PrimarySearch search_;  // of the thread
  Stream* stream_ = nullptr;
  grpc::ClientContext* asking_ = nullptr;  // a call that is under way
  bool is_ending_ = false;
  int superseded_ = 0;        // since the last answer
  bool has_no_room_ = false;  // the log, so nothing is sent for a while
  std::deque<std::function<void()>> callbacks_;
  size_t unheard_ = 0;  // callbacks that have not run to their end
  bool is_calling_ = false;
};

// The stream to one primary. Its operations begin under the driver's lock.
class LogClient::Driver::Stream final
    : public grpc::ClientBidiReactor<v1::AppendStreamRequest,
                                     v1::AppendStreamResponse> {
 public:
  Stream(Driver& driver, v1::LogService::Stub& stub, uint64_t resumption)
      : driver_(driver) {
    v1::AppendStreamRequest::Begin* const begin = request_.mutable_begin();
    begin->set_log(driver_.options_.log);
    begin->set_epoch(driver_.session_.epoch());
    SetPlace(driver_.session_.client(), begin->mutable_client());
    begin->set_durability(v1::DURABILITY_QUORUM);
    begin->set_resumption(resumption);
    stub.async()->AppendStream(&context_, this);
    // Callers begin writes, too.
    AddHold();
    is_writing_ = true;
    StartWrite(&request_);
    StartRead(&response_);
    StartCall();
  }

  // Sends what there is to send.
  void Send() {
    if (is_writing_ || is_closing_ || driver_.has_no_room_ ||
        !driver_.session_.HasToSend()) {
      return;
    }
    const Sending sending =
        driver_.session_.TakeToSend(driver_.options_.message_bytes_max);
    v1::AppendStreamRequest::Requests* const requests =
        request_.mutable_requests();
    requests->Clear();
    requests->mutable_first()->set_sequence(sending.first_sequence);
    requests->mutable_first()->set_lowest_unanswered(sending.lowest_unanswered);
    for (const Payload* const payload : sending.payloads) {
      Set(*payload, requests->add_payloads());
    }
    is_writing_ = true;
    StartWrite(&request_);
  }
  // Sends no more; the primary ends the stream then.
  void Close() {
    if (std::exchange(is_closing_, true)) return;
    if (!is_writing_) EndWrites();
  }
  void Cancel() {
    context_.TryCancel();
    Close();
  }
  bool is_done() const { return is_done_; }

 private:
  static void Set(const Payload& payload, v1::Payload* out) {
    out->set_tag(payload.tag);
    if (payload.expected_lsn) out->set_expected_lsn(*payload.expected_lsn);
    out->set_only_if_last(payload.only_if_last);
    if (payload.parts.size() == 1) {
      out->set_data(payload.parts.front());
      return;
    }
    for (const std::string& part : payload.parts) out->add_batch(part);
  }

  void EndWrites() {
    StartWritesDone();
    RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(driver_.mutex_);
    is_writing_ = false;
    if (!ok) is_closing_ = true;
    if (is_closing_) {
      ok ? EndWrites() : RemoveHold();
    } else {
      Send();
    }
  }

  void OnReadDone(bool ok) override {
    {
      const std::lock_guard lock(driver_.mutex_);
      if (!ok) {
        Close();
        return;
      }
      if (!driver_.Take(response_)) {
        Cancel();
      } else if (response_.has_last_admitted()) {
        Close();
      } else {
        Send();
      }
      StartRead(&response_);
    }
    driver_.RunCallbacks();
  }

  void OnDone(const grpc::Status& /*status*/) override {
    const std::lock_guard lock(driver_.mutex_);
    is_done_ = true;
    driver_.changed_.notify_all();
  }

  Driver& driver_;
  grpc::ClientContext context_;
  v1::AppendStreamRequest request_;
  v1::AppendStreamResponse response_;
  bool is_writing_ = false;
  bool is_closing_ = false;
  bool is_done_ = false;
};

void LogClient::Driver::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    if (asking_ != nullptr) asking_->TryCancel();
    if (stream_ != nullptr) stream_->Cancel();
    changed_.notify_all();
  }
  thread_.Join();
  {
    const std::lock_guard lock(mutex_);
    session_.End(absl::CancelledError("the client ends; the request may be in "
                                      "the log or not"),
                 absl::CancelledError("the client ends; it was never sent"));
  }
  RunCallbacks();
}

absl::Status LogClient::Driver::Append(Payload payload,
                                       AppendCallback callback) {
  const std::lock_guard lock(mutex_);
  const auto taken = session_.Append(
      std::move(payload),
      [this, callback = std::move(callback)](absl::StatusOr<Appended> answer) {
        ++unheard_;
        callbacks_.push_back([callback, answer = std::move(answer)] {
          if (callback) callback(answer);
        });
      });
  if (!taken.ok()) return taken.status();
  if (stream_ != nullptr) stream_->Send();
  return absl::OkStatus();
}

void LogClient::Driver::RunCallbacks() {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_calling_, true)) return;  // another thread runs them
  while (!callbacks_.empty()) {
    const std::function<void()> callback = std::move(callbacks_.front());
    callbacks_.pop_front();
    lock.unlock();
    callback();
    lock.lock();
    --unheard_;
  }
  is_calling_ = false;
  changed_.notify_all();
}

void LogClient::Driver::Run() {
  for (;;) {
    v1::LogService::Stub* const stub = FindPrimary();
    RunCallbacks();
    if (stub == nullptr) return;
    std::unique_lock lock(mutex_);
    if (is_ending_) return;
    Stream stream(*this, *stub, session_.resumption());
    stream_ = &stream;
    while (!stream.is_done()) {
      changed_.wait(lock, [&] { return stream.is_done() || has_no_room_; });
      changed_.wait_for(lock, kRoomRest, [&] { return stream.is_done(); });
      has_no_room_ = false;
      if (!stream.is_done()) stream.Send();
    }
    stream_ = nullptr;
    session_.Lost();
  }
}

v1::LogService::Stub* LogClient::Driver::FindPrimary() {
  for (;;) {
    PrimarySearch::Step step;
    {
      std::unique_lock lock(mutex_);
      step = search_.Next(NowNanos());
      const auto rest =
          std::chrono::nanoseconds(step.not_before_ns - NowNanos());
      changed_.wait_for(lock, rest, [this] { return is_ending_; });
      if (is_ending_) return nullptr;
    }
    v1::LogService::Stub& stub = StubOf(step.address);
    const grpc::Status begun = Begin(stub);
    if (begun.ok()) {
      search_.Found();
      return &stub;
    }
    if (!MayGoOn(begun)) return nullptr;
    search_.NotPrimary(ErrorIn(begun).not_primary().address());
  }
}

v1::LogService::Stub& LogClient::Driver::StubOf(const std::string& address) {
  std::unique_ptr<v1::LogService::Stub>& stub = stubs_[address];
  if (stub == nullptr) {
    grpc::ChannelArguments arguments;
    // A request is sent again by this class alone.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 10);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    stub = v1::LogService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }
  return *stub;
}

grpc::Status LogClient::Driver::Begin(v1::LogService::Stub& stub) {
  const bool is_new = [this] {
    const std::lock_guard lock(mutex_);
    session_.Lost();
    return session_.state() == State::kNew;
  }();
  return is_new ? Open(stub) : Resume(stub);
}

grpc::ClientContext& LogClient::Driver::NewContext(
    std::optional<grpc::ClientContext>& context) {
  context.emplace();
  context->set_deadline(gpr_time_from_millis(options_.answer_ms, GPR_TIMESPAN));
  const std::lock_guard lock(mutex_);
  asking_ = &*context;
  if (is_ending_) context->TryCancel();
  return *context;
}

grpc::Status LogClient::Driver::Open(v1::LogService::Stub& stub) {
  std::optional<grpc::ClientContext> context;
  v1::OpenClientRequest request;
  request.set_log(options_.log);
  v1::OpenClientResponse response;
  const grpc::Status status =
      stub.OpenClient(&NewContext(context), request, &response);
  const std::lock_guard lock(mutex_);
  asking_ = nullptr;
  if (status.ok())
    session_.Opened(PlaceOf(response.client()), response.epoch());
  return status;
}

grpc::Status LogClient::Driver::Resume(v1::LogService::Stub& stub) {
  std::optional<grpc::ClientContext> context;
  v1::ResumeClientRequest request;
  request.set_log(options_.log);
  {
    const std::lock_guard lock(mutex_);
    SetPlace(session_.client(), request.mutable_client());
    request.set_lowest_unanswered(session_.lowest_unanswered());
    request.set_last_epoch(session_.last_epoch());
  }
  v1::ResumeClientResponse response;
  const grpc::Status status =
      stub.ResumeClient(&NewContext(context), request, &response);
  const std::lock_guard lock(mutex_);
  asking_ = nullptr;
  if (!status.ok()) return status;
  std::vector<std::pair<uint64_t, Place>> places;
  for (const v1::Run& run : response.places()) {
    for (uint64_t i = 0; run.has_first() && i < run.count(); ++i) {
      places.emplace_back(run.first_sequence() + i,
                          Place{run.first().epoch(), run.first().lsn() + i});
    }
  }
  session_.Resumed(response.epoch(), response.resumption(),
                   response.last_sequence(), places);
  if (response.ended()) {
    return {grpc::StatusCode::NOT_FOUND, "the client has ended"};
  }
  return status;
}

bool LogClient::Driver::MayGoOn(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED: {
      const std::lock_guard lock(mutex_);
      End(StatusOf(status.error_code(), status.error_message()));
      return false;
    }
    default:
      return true;
  }
}

void LogClient::Driver::End(const absl::Status& why) {
  session_.End(absl::AbortedError(absl::StrCat(
                   "the request may be in the log or not: ", why.message())),
               why);
}

bool LogClient::Driver::Take(const v1::AppendStreamResponse& answers) {
  for (const v1::Run& run : answers.done()) {
    session_.Done(run.first_sequence(), run.count(), FirstOf(run));
    superseded_ = 0;
  }
  for (const auto& refusal : answers.refused()) {
    if (!TakeRefusal(refusal)) return false;
  }
  return true;
}

bool LogClient::Driver::TakeRefusal(
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

absl::StatusOr<std::unique_ptr<LogClient>> LogClient::Start(
    LogClientOptions options) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError(
        "no address: name at least one node that serves the log");
  }
  auto driver = std::make_shared<Driver>(std::move(options));
  const absl::Status started = driver->Start();
  if (!started.ok()) return started;
  return std::unique_ptr<LogClient>(new LogClient(std::move(driver)));
}

LogClient::LogClient(std::shared_ptr<Driver> driver)
    : driver_(std::move(driver)) {}

LogClient::~LogClient() { driver_->Stop(); }

absl::Status LogClient::AppendAsync(Payload payload, AppendCallback callback) {
  return driver_->Append(std::move(payload), std::move(callback));
}

absl::StatusOr<Appended> LogClient::Append(Payload payload,
                                           absl::Duration timeout) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::StatusOr<Appended>> answer;
  };
  const auto shared = std::make_shared<Answer>();
  const absl::Status taken = driver_->Append(
      std::move(payload), [shared](absl::StatusOr<Appended> answer) {
        const std::lock_guard lock(shared->mutex);
        shared->answer = std::move(answer);
        shared->changed.notify_all();
      });
  if (!taken.ok()) return taken;
  std::unique_lock lock(shared->mutex);
  if (!WaitFor(shared->changed, lock, timeout,
               [&] { return shared->answer.has_value(); })) {
    return absl::DeadlineExceededError(
        "no primary has answered in time; the request may be appended later");
  }
  return *std::move(shared->answer);
}

absl::Status LogClient::Flush(absl::Duration timeout) {
  return driver_->Flush(timeout);
}

}  // namespace alpheus::client
