// SPDX-License-Identifier: Apache-2.0
#include "bench/service/grpc/idle_streams.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {
namespace {

constexpr uint64_t kStreamsOfConnection = 2'500;
constexpr std::chrono::seconds kOpenTimeout{120};
constexpr uint64_t kCreditBytes = uint64_t{1} << 20;

using Stub = v1::LogService::Stub;

// How many streams are so.
struct Counts {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t idle = 0;
  uint64_t ended = 0;
};

// Writes two messages, and reads whatever comes.
template <class Request, class Response>
class IdleStream final : public grpc::ClientBidiReactor<Request, Response> {
 public:
  IdleStream(Counts& counts, Request first, Request second)
      : counts_(counts), first_(std::move(first)), second_(std::move(second)) {}

  template <class Begin>
  void Open(const Begin& begin) {
    begin(&context_, this);
    this->StartWrite(&first_);
    this->StartRead(&response_);
    this->StartCall();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  void OnWriteDone(bool ok) override {
    if (ok && !std::exchange(has_written_, true)) this->StartWrite(&second_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (!std::exchange(is_idle_, true)) {
      const std::lock_guard lock(counts_.mutex);
      ++counts_.idle;
      counts_.changed.notify_all();
    }
    this->StartRead(&response_);
  }
  void OnDone(const grpc::Status& /*status*/) override {
    const std::lock_guard lock(counts_.mutex);
    ++counts_.ended;
    counts_.changed.notify_all();
  }

  Counts& counts_;
  grpc::ClientContext context_;
  Request first_;
  Request second_;
  Response response_;
  bool has_written_ = false;  // the first one
  bool is_idle_ = false;
};

using AppendsStream =
    IdleStream<v1::AppendStreamRequest, v1::AppendStreamResponse>;
using TailStream = IdleStream<v1::TailRequest, v1::TailResponse>;

class Streams final : public IdleStreams {
 public:
  Streams(const std::string& address, std::string log, uint64_t count)
      : log_(std::move(log)), count_(count) {
    grpc::ChannelArguments arguments;
    // Else all channels would share one connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    for (uint64_t i = 0; i < count; i += kStreamsOfConnection) {
      stubs_.push_back(v1::LogService::NewStub(grpc::CreateCustomChannel(
          address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }
  ~Streams() override {
    for (const auto& stream : appends_) stream->Cancel();
    for (const auto& stream : tails_) stream->Cancel();
    std::unique_lock lock(counts_.mutex);
    counts_.changed.wait(lock, [this] {
      return counts_.ended == appends_.size() + tails_.size();
    });
  }

  absl::Status OpenAll(StreamKind kind) {
    if (kind == StreamKind::kTail) {
      ALPHEUS_RETURN_IF_ERROR(OpenTails());
      ALPHEUS_RETURN_IF_ERROR(OpenAppends(1));  // the record that they get
    } else {
      ALPHEUS_RETURN_IF_ERROR(OpenAppends(count_));
    }
    const uint64_t all = appends_.size() + tails_.size();
    std::unique_lock lock(counts_.mutex);
    const bool is_done = counts_.changed.wait_for(lock, kOpenTimeout, [&] {
      return counts_.ended > 0 || counts_.idle == all;
    });
    if (counts_.ended > 0) {
      return absl::UnavailableError(
          absl::StrCat(counts_.ended, " streams have ended"));
    }
    if (is_done) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat(counts_.idle, " of ", all, " streams have got an answer"));
  }

  uint64_t CountOpen() const override {
    const std::lock_guard lock(counts_.mutex);
    return appends_.size() + tails_.size() - counts_.ended;
  }

 private:
  Stub& StubOf(uint64_t i) { return *stubs_[i / kStreamsOfConnection]; }

  absl::Status OpenAppends(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      grpc::ClientContext context;
      v1::OpenClientRequest open;
      open.set_log(log_);
      v1::OpenClientResponse opened;
      const grpc::Status status = StubOf(i).OpenClient(&context, open, &opened);
      if (!status.ok()) return absl::UnavailableError(status.error_message());
      v1::AppendStreamRequest first;
      first.mutable_begin()->set_log(log_);
      first.mutable_begin()->set_epoch(opened.epoch());
      *first.mutable_begin()->mutable_client() = opened.client();
      v1::AppendStreamRequest second;
      second.mutable_requests()->mutable_first()->set_sequence(1);
      second.mutable_requests()->mutable_first()->set_lowest_unanswered(1);
      second.mutable_requests()->add_payloads()->set_data("once");
      appends_.push_back(std::make_unique<AppendsStream>(
          counts_, std::move(first), std::move(second)));
      appends_.back()->Open([&](auto* its_context, auto* reactor) {
        StubOf(i).async()->AppendStream(its_context, reactor);
      });
    }
    return absl::OkStatus();
  }

  absl::Status OpenTails() {
    grpc::ClientContext context;
    v1::GetStatusRequest ask;
    ask.set_log(log_);
    v1::GetStatusResponse told;
    const grpc::Status status = StubOf(0).GetStatus(&context, ask, &told);
    if (!status.ok()) return absl::UnavailableError(status.error_message());
    for (uint64_t i = 0; i < count_; ++i) {
      v1::TailRequest first;
      first.mutable_begin()->set_log(log_);
      first.mutable_begin()->set_from_lsn(told.durable_lsn() + 1);
      v1::TailRequest second;
      second.mutable_credit()->set_bytes(kCreditBytes);
      tails_.push_back(std::make_unique<TailStream>(counts_, std::move(first),
                                                    std::move(second)));
      tails_.back()->Open([&](auto* its_context, auto* reactor) {
        StubOf(i).async()->Tail(its_context, reactor);
      });
    }
    return absl::OkStatus();
  }

  const std::string log_;
  const uint64_t count_;
  mutable Counts counts_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  std::vector<std::unique_ptr<AppendsStream>> appends_;
  std::vector<std::unique_ptr<TailStream>> tails_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<IdleStreams>> IdleStreams::Open(
    const std::string& address, const std::string& log, StreamKind kind,
    uint64_t count) {
  auto streams = std::make_unique<Streams>(address, log, count);
  ALPHEUS_RETURN_IF_ERROR(streams->OpenAll(kind));
  return std::unique_ptr<IdleStreams>(std::move(streams));
}

}  // namespace alpheus::bench::service
