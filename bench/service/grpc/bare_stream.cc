// SPDX-License-Identifier: Apache-2.0
#include "bench/service/grpc/bare_stream.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "alpheus/v1/log_service.grpc.pb.h"

namespace alpheus::bench::service {
namespace {

// As the client's (log_client_options.h).
constexpr size_t kBareMessageBytesMax = size_t{64} << 10;

class BareStream final
    : public Appender,
      public grpc::ClientBidiReactor<v1::AppendStreamRequest,
                                     v1::AppendStreamResponse> {
 public:
  explicit BareStream(const std::string& address)
      : stub_(v1::LogService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    request_.mutable_begin()->set_epoch(1);
    stub_->async()->AppendStream(&context_, this);
    AddHold();
    is_writing_ = true;
    StartWrite(&request_);
    StartRead(&response_);
    StartCall();
  }

  ~BareStream() override {
    context_.TryCancel();
    RemoveHold();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
  }

  absl::StatusOr<uint64_t> Append(const std::string& payload) override {
    struct Waiting {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<absl::StatusOr<uint64_t>> answer;
    };
    const auto waiting = std::make_shared<Waiting>();
    const absl::Status begun =
        Begin(payload, [waiting](const absl::StatusOr<uint64_t>& lsn) {
          const std::lock_guard lock(waiting->mutex);
          waiting->answer = lsn;
          waiting->changed.notify_all();
        });
    if (!begun.ok()) return begun;
    std::unique_lock lock(waiting->mutex);
    waiting->changed.wait(lock, [&] { return waiting->answer.has_value(); });
    return *waiting->answer;
  }

  absl::Status Begin(const std::string& payload, Answered answered) override {
    const std::lock_guard lock(mutex_);
    if (is_broken_) return absl::UnavailableError("the stream has ended");
    ++ready_;
    payload_ = payload;
    answers_.push_back(std::move(answered));
    // Answers that are being taken have their records sent in one message.
    if (!is_taking_) Send();
    return absl::OkStatus();
  }

 private:
  // Requires: the lock.
  void Send() {
    if (is_writing_ || is_broken_ || ready_ == 0) return;
    const size_t most =
        std::max<size_t>(1, kBareMessageBytesMax / (payload_.size() + 1));
    v1::AppendStreamRequest::Requests* const requests =
        request_.mutable_requests();
    requests->Clear();
    requests->mutable_first()->set_sequence(next_);
    requests->mutable_first()->set_lowest_unanswered(next_);
    for (size_t i = 0; i < most && ready_ > 0; ++i, --ready_, ++next_) {
      requests->add_payloads()->set_data(payload_);
    }
    is_writing_ = true;
    StartWrite(&request_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (ok) Send();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Break();
      return;
    }
    std::vector<std::pair<Answered, uint64_t>> answered;
    {
      const std::lock_guard lock(mutex_);
      is_taking_ = true;
      for (const v1::Run& run : response_.done()) {
        for (uint64_t i = 0; i < run.count() && !answers_.empty(); ++i) {
          answered.emplace_back(std::move(answers_.front()),
                                run.first().lsn() + i);
          answers_.pop_front();
        }
      }
    }
    for (const auto& [answer, lsn] : answered) answer(lsn);
    const std::lock_guard lock(mutex_);
    is_taking_ = false;
    Send();
    StartRead(&response_);
  }

  void Break() {
    std::deque<Answered> unanswered;
    {
      const std::lock_guard lock(mutex_);
      is_broken_ = true;
      unanswered = std::exchange(answers_, {});
    }
    for (const Answered& answer : unanswered) {
      answer(absl::UnavailableError("the stream has ended"));
    }
  }

  void OnDone(const grpc::Status& /*status*/) override {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    changed_.notify_all();
  }

  const std::unique_ptr<v1::LogService::Stub> stub_;
  grpc::ClientContext context_;
  v1::AppendStreamRequest request_;
  v1::AppendStreamResponse response_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string payload_;
  std::deque<Answered> answers_;  // of records that have none, in order
  size_t ready_ = 0;              // records that were not sent
  uint64_t next_ = 1;
  bool is_writing_ = false;
  bool is_taking_ = false;
  bool is_broken_ = false;
  bool is_done_ = false;
};

}  // namespace

std::unique_ptr<Appender> OpenBareStream(const std::string& address) {
  return std::make_unique<BareStream>(address);
}

}  // namespace alpheus::bench::service
