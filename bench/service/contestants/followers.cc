// SPDX-License-Identifier: Apache-2.0
#include "bench/service/contestants/followers.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "api/client/grpc/log_reader.h"
#include "bench/service/contestants/served_log.h"
#include "bench/service/grpc/service_calls.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::OwnProcess;

namespace {

constexpr uint64_t kMuchCredit = uint64_t{1} << 30;

class ClientFollower final : public Follower {
 public:
  explicit ClientFollower(std::unique_ptr<client::LogReader> reader)
      : reader_(std::move(reader)) {}

  // A first call, so that it is connected before records come.
  absl::Status Connect() {
    const auto nothing = reader_->Next(absl::Milliseconds(100));
    if (absl::IsDeadlineExceeded(nothing.status())) return absl::OkStatus();
    return nothing.status();
  }

  absl::StatusOr<std::string> Next() override {
    auto record = reader_->Next(absl::Seconds(1));
    if (absl::IsDeadlineExceeded(record.status())) return std::string();
    ALPHEUS_RETURN_IF_ERROR(record.status());
    if (!record->has_value() || (*record)->parts.empty()) return std::string();
    return std::move((*record)->parts.front());
  }

 private:
  const std::unique_ptr<client::LogReader> reader_;
};

}  // namespace

MakeFollower FollowersOf(const std::vector<std::string>& addresses,
                         const std::string& log) {
  return [options = ClientOptionsOf(
              addresses, log)]() -> absl::StatusOr<std::unique_ptr<Follower>> {
    ALPHEUS_ASSIGN_OR_RETURN(
        const uint64_t durable,
        ServiceCalls(options.addresses.front(), options.log).DurableLsn());
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<client::LogReader> reader,
        client::LogReader::Start(options, {.from_lsn = durable + 1}));
    auto follower = std::make_unique<ClientFollower>(std::move(reader));
    ALPHEUS_RETURN_IF_ERROR(follower->Connect());
    return follower;
  };
}

absl::StatusOr<OwnProcess> StartReader(
    const std::vector<std::string>& addresses, const std::string& log,
    uint64_t from_lsn) {
  std::vector<std::string> words = {kReaderKind, log, absl::StrCat(from_lsn)};
  words.insert(words.end(), addresses.begin(), addresses.end());
  return OwnProcess::Start(std::move(words));
}

absl::Status ServeReader(const std::vector<std::string>& words) {
  uint64_t from_lsn = 0;
  if (words.size() < 4 || !absl::SimpleAtoi(words[2], &from_lsn)) {
    return absl::InvalidArgumentError("usage: reader LOG FROM_LSN ADDRESS...");
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<client::LogReader> reader,
      client::LogReader::Start(
          ClientOptionsOf({words.begin() + 3, words.end()}, words[1]),
          {.from_lsn = from_lsn, .credit_bytes = kMuchCredit}));
  ALPHEUS_RETURN_IF_ERROR(reader->Next().status());
  replicated::Say("it reads");
  for (;;) ALPHEUS_RETURN_IF_ERROR(reader->Next().status());
}

}  // namespace alpheus::bench::service
