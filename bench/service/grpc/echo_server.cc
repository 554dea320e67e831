// SPDX-License-Identifier: Apache-2.0
#include "bench/service/grpc/echo_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "bench/replicated/candidates/own_process.h"

namespace alpheus::bench::service {
namespace {

// As the service's (log_server.cc, messages.h).
constexpr size_t kBufferBytesMax = size_t{256} << 20;
constexpr int kWindowBytes = 1 << 20;
constexpr int kStreamsMax = 4'096;
constexpr int kEchoMessageBytesMax = 16 << 20;

constexpr uint64_t kEpoch = 1;

// The common part of all streams.
class Hub;

class EchoTail final
    : public grpc::ServerBidiReactor<v1::TailRequest, v1::TailResponse> {
 public:
  explicit EchoTail(Hub& hub) : hub_(hub) { StartRead(&request_); }

  // Sends the records of a message, and lets those wait that come while another
  // message is under way.
  void Send(uint64_t first_lsn, const v1::AppendStreamRequest::Requests& sent) {
    const std::lock_guard lock(mutex_);
    uint64_t lsn = first_lsn;
    for (const v1::Payload& payload : sent.payloads()) {
      v1::Record* const record = waiting_.add_records();
      record->mutable_place()->set_epoch(kEpoch);
      record->mutable_place()->set_lsn(lsn++);
      record->add_payloads(payload.data());
    }
    waiting_.set_next_lsn(lsn);
    waiting_.set_durable_lsn(lsn - 1);
    if (!is_writing_) Write();
  }

 private:
  void Write() {
    writing_ = std::exchange(waiting_, {});
    is_writing_ = true;
    StartWrite(&writing_);
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (ok && !is_over_ && !waiting_.records().empty()) Write();
  }
  void OnDone() override { delete this; }

  Hub& hub_;
  v1::TailRequest request_;
  std::mutex mutex_;
  v1::TailResponse writing_;
  v1::TailResponse waiting_;
  bool is_writing_ = false;
  bool is_over_ = false;
};

class Hub {
 public:
  // Returns the first LSN of the records of that message, which all tails get.
  uint64_t Take(const v1::AppendStreamRequest::Requests& requests) {
    const auto count = static_cast<uint64_t>(requests.payloads_size());
    const uint64_t first = next_lsn_.fetch_add(count);
    if (tail_count_.load() == 0) return first;
    const std::lock_guard lock(mutex_);
    for (EchoTail* const tail : tails_) tail->Send(first, requests);
    return first;
  }
  void Add(EchoTail* tail) {
    const std::lock_guard lock(mutex_);
    tails_.insert(tail);
    tail_count_.store(tails_.size());
  }
  void Remove(EchoTail* tail) {
    const std::lock_guard lock(mutex_);
    tails_.erase(tail);
    tail_count_.store(tails_.size());
  }
  uint64_t next_lsn() const { return next_lsn_.load(); }

 private:
  std::atomic<uint64_t> next_lsn_{1};
  std::atomic<size_t> tail_count_{0};
  std::mutex mutex_;
  std::set<EchoTail*> tails_;
};

void EchoTail::OnReadDone(bool ok) {
  if (!ok) {
    hub_.Remove(this);
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    Finish(grpc::Status::OK);
    return;
  }
  if (request_.has_begin()) hub_.Add(this);
  StartRead(&request_);
}

class EchoStream final
    : public grpc::ServerBidiReactor<v1::AppendStreamRequest,
                                     v1::AppendStreamResponse> {
 public:
  explicit EchoStream(Hub& hub) : hub_(hub) { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      Finish(grpc::Status::OK);
      return;
    }
    if (request_.has_requests()) Answer(request_.requests());
    StartRead(&request_);
  }

  void Answer(const v1::AppendStreamRequest::Requests& requests) {
    const uint64_t lsn = hub_.Take(requests);
    const std::lock_guard lock(mutex_);
    v1::Run* const run = waiting_.add_done();
    run->set_first_sequence(requests.first().sequence());
    run->set_count(static_cast<uint64_t>(requests.payloads_size()));
    run->mutable_first()->set_epoch(kEpoch);
    run->mutable_first()->set_lsn(lsn);
    waiting_.set_durable_lsn(lsn + run->count() - 1);
    if (!is_writing_) Write();
  }

  void Write() {
    writing_ = std::exchange(waiting_, {});
    is_writing_ = true;
    StartWrite(&writing_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (ok && !is_over_ && !waiting_.done().empty()) Write();
  }
  void OnDone() override { delete this; }

  Hub& hub_;
  v1::AppendStreamRequest request_;
  std::mutex mutex_;
  v1::AppendStreamResponse writing_;
  v1::AppendStreamResponse waiting_;
  bool is_writing_ = false;
  bool is_over_ = false;
};

class EchoCalls final : public v1::LogService::CallbackService {
 public:
  grpc::ServerUnaryReactor* OpenClient(
      grpc::CallbackServerContext* context,
      const v1::OpenClientRequest* /*request*/,
      v1::OpenClientResponse* response) override {
    response->mutable_client()->set_epoch(kEpoch);
    response->mutable_client()->set_lsn(++clients_);
    response->set_epoch(kEpoch);
    return Good(context);
  }
  grpc::ServerUnaryReactor* CloseClient(
      grpc::CallbackServerContext* context,
      const v1::CloseClientRequest* /*request*/,
      v1::CloseClientResponse* /*response*/) override {
    return Good(context);
  }
  grpc::ServerUnaryReactor* GetStatus(
      grpc::CallbackServerContext* context,
      const v1::GetStatusRequest* /*request*/,
      v1::GetStatusResponse* response) override {
    response->set_is_primary(true);
    response->set_epoch(kEpoch);
    response->set_next_lsn(hub_.next_lsn());
    response->set_durable_lsn(hub_.next_lsn() - 1);
    return Good(context);
  }
  grpc::ServerUnaryReactor* Cleanup(
      grpc::CallbackServerContext* context,
      const v1::CleanupRequest* /*request*/,
      v1::CleanupResponse* /*response*/) override {
    return Good(context);
  }
  grpc::ServerBidiReactor<v1::AppendStreamRequest, v1::AppendStreamResponse>*
  AppendStream(grpc::CallbackServerContext* /*context*/) override {
    return new EchoStream(hub_);  // its own
  }
  grpc::ServerBidiReactor<v1::TailRequest, v1::TailResponse>* Tail(
      grpc::CallbackServerContext* /*context*/) override {
    return new EchoTail(hub_);  // its own
  }

 private:
  static grpc::ServerUnaryReactor* Good(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  Hub hub_;
  std::atomic<uint64_t> clients_{0};
};

}  // namespace

absl::Status ServeEcho() {
  EchoCalls calls;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&calls);
  builder.SetMaxReceiveMessageSize(kEchoMessageBytesMax);
  builder.SetResourceQuota(
      grpc::ResourceQuota("clients").Resize(kBufferBytesMax));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             kWindowBytes);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError("echo: can't listen on 127.0.0.1");
  }
  replicated::Say(absl::StrCat("127.0.0.1:", port));
  server->Wait();
  return absl::OkStatus();
}

}  // namespace alpheus::bench::service
