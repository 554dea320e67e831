// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/record_call.h"

#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace alpheus::client {
namespace {

// A call of either kind. `Reactor` is gRPC's.
//
// The owner's thread begins reads, and gRPC would end a call between two of
// them. A hold keeps it, until a read fails, or the call is dropped.
template <class Reactor, class Response>
class CallOf : public Reactor, public RecordCall {
 public:
  State Await(std::chrono::nanoseconds timeout) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout,
                      [this] { return has_message_ || is_done_; });
    if (has_message_) return State::kMessage;
    return is_done_ ? State::kEnded : State::kWaiting;
  }
  const Records& records() const override { return response_.records(); }
  uint64_t next_lsn() const override { return response_.next_lsn(); }
  void Release(uint64_t /*payload_bytes*/) override {
    const std::lock_guard lock(mutex_);
    has_message_ = false;
    BeginRead();
  }
  const grpc::Status& status() const override { return status_; }
  void Cancel() override { context_.TryCancel(); }

 protected:
  // Begins the call, once the stub has it.
  void Begin() {
    this->AddHold();
    BeginRead();
    this->StartCall();
  }
  void Drop() {
    Cancel();
    std::unique_lock lock(mutex_);
    is_dropped_ = true;
    if (has_message_) this->RemoveHold();
    changed_.wait(lock, [this] { return is_done_; });
  }

  grpc::ClientContext context_;
  Response response_;
  std::mutex mutex_;
  std::condition_variable changed_;

 private:
  void BeginRead() { this->StartRead(&response_); }
  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    has_message_ = ok;
    if (!ok || is_dropped_) this->RemoveHold();
    changed_.notify_all();
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
    is_done_ = true;
    changed_.notify_all();
  }

  bool has_message_ = false;  // and no read is under way
  bool is_dropped_ = false;
  bool is_done_ = false;
  grpc::Status status_;
};

class ReadCall final : public CallOf<grpc::ClientReadReactor<v1::ReadResponse>,
                                     v1::ReadResponse> {
 public:
  ReadCall(Stub& stub, const ChannelSecurity& security,
           const v1::ReadRequest& request)
      : request_(request) {
    security.Authorize(&context_);
    stub.async()->Read(&context_, &request_, this);
    Begin();
  }
  ~ReadCall() override { Drop(); }

 private:
  const v1::ReadRequest request_;
};

class TailCall final
    : public CallOf<grpc::ClientBidiReactor<v1::TailRequest, v1::TailResponse>,
                    v1::TailResponse> {
 public:
  TailCall(Stub& stub, const ChannelSecurity& security,
           const v1::TailRequest::Begin& begin, uint64_t credit)
      : credit_(credit), owed_(credit) {
    security.Authorize(&context_);
    *request_.mutable_begin() = begin;
    stub.async()->Tail(&context_, this);
    is_writing_ = true;
    StartWrite(&request_);
    Begin();
  }
  ~TailCall() override { Drop(); }

  void Release(uint64_t payload_bytes) override {
    {
      const std::lock_guard lock(mutex_);
      owed_ += payload_bytes;
      // Half of the credit at a time.
      if (2 * owed_ >= credit_) SendCredit();
    }
    CallOf::Release(payload_bytes);
  }

 private:
  void SendCredit() {
    if (is_writing_ || is_broken_ || owed_ == 0) return;
    request_.mutable_credit()->set_bytes(std::exchange(owed_, 0));
    is_writing_ = true;
    StartWrite(&request_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    is_broken_ = !ok;
    if (2 * owed_ >= credit_) SendCredit();
  }

  const uint64_t credit_;
  v1::TailRequest request_;
  uint64_t owed_;  // credit that was not given yet
  bool is_writing_ = false;
  bool is_broken_ = false;
};

}  // namespace

std::unique_ptr<RecordCall> RecordCall::Read(Stub& stub,
                                             const ChannelSecurity& security,
                                             const v1::ReadRequest& request) {
  return std::make_unique<ReadCall>(stub, security, request);
}

std::unique_ptr<RecordCall> RecordCall::Tail(
    Stub& stub, const ChannelSecurity& security,
    const v1::TailRequest::Begin& begin, uint64_t credit) {
  return std::make_unique<TailCall>(stub, security, begin, credit);
}

}  // namespace alpheus::client
