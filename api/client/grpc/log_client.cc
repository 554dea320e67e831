// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/log_client.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/client/grpc/append_driver.h"
#include "api/client/grpc/channel_security.h"
#include "log/base/status_macros.h"

namespace alpheus::client {

absl::StatusOr<std::unique_ptr<LogClient>> LogClient::Start(
    LogClientOptions options) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError(
        "no address: name at least one node that serves the log");
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      ChannelSecurity security,
      ChannelSecurity::Load(options.security, options.addresses));
  auto driver =
      std::make_unique<AppendDriver>(std::move(options), std::move(security));
  const absl::Status started = driver->Start();
  if (!started.ok()) return started;
  return std::unique_ptr<LogClient>(new LogClient(std::move(driver)));
}

LogClient::LogClient(std::unique_ptr<AppendDriver> driver)
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
  const auto is_answered = [&] { return shared->answer.has_value(); };
  std::unique_lock lock(shared->mutex);
  if (timeout == absl::InfiniteDuration()) {
    shared->changed.wait(lock, is_answered);
  } else if (!shared->changed.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                                       is_answered)) {
    const std::string said = driver_->LastSaid();
    return absl::DeadlineExceededError(absl::StrCat(
        "no primary has answered in time; the request may be appended later",
        said.empty() ? "" : ". Last: ", said));
  }
  return *std::move(shared->answer);
}

AppendAwaiter LogClient::CoAppend(Payload payload) {
  return {*this, std::move(payload)};
}

bool AppendAwaiter::await_suspend(std::coroutine_handle<> caller) {
  const absl::Status taken = client_.AppendAsync(
      std::move(payload_), [this, caller](absl::StatusOr<Appended> answer) {
        answer_ = std::move(answer);
        caller.resume();
      });
  if (taken.ok()) return true;
  answer_ = taken;
  return false;
}

absl::Status LogClient::Flush(absl::Duration timeout) {
  return driver_->Flush(timeout);
}

uint64_t LogClient::UnknownOutcomes() { return driver_->UnknownOutcomes(); }

}  // namespace alpheus::client
