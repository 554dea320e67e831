// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/unary_call.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "log/base/mutex.h"

namespace alpheus::rpc {

class UnaryCall::Reactor final : public grpc::ServerUnaryReactor {
 public:
  static std::shared_ptr<Reactor> New(CallCounts& counts, Method method,
                                      int64_t began_ns) {
    std::shared_ptr<Reactor> call(new Reactor(counts, method, began_ns));
    call->self_ = call;
    return call;
  }

  void Answer(absl::FunctionRef<grpc::Status()> make) {
    SharedUse use;  // until the answer has left
    {
      const MutexLock lock(mutex_);
      if (std::exchange(is_over_, true)) return;
      use = std::move(use_);
    }
    Send(make());
  }
  void Keep(SharedUse use) {
    const MutexLock lock(mutex_);
    if (!is_over_) use_ = std::move(use);
  }
  SharedUse BeginWork() {
    const MutexLock lock(mutex_);
    if (is_over_) return nullptr;
    is_working_ = true;
    return use_;
  }
  void EndWork() {
    {
      const MutexLock lock(mutex_);
      is_working_ = false;
      if (!has_caller_gone_) return;
    }
    Leave();
  }

 private:
  Reactor(CallCounts& counts, Method method, int64_t began_ns)
      : counts_(counts), method_(method), began_ns_(began_ns) {}

  // UNC2.
  void OnCancel() override {
    {
      const MutexLock lock(mutex_);
      has_caller_gone_ = true;
      if (is_working_) return;
    }
    Leave();
  }
  void OnDone() override { const auto last = std::move(self_); }

  void Leave() {
    SharedUse use;
    {
      const MutexLock lock(mutex_);
      if (std::exchange(is_over_, true)) return;
      use = std::move(use_);
    }
    const grpc::ServerUnaryReactor* const name = this;  // as UnaryCall::name
    if (use != nullptr) (*use)->waits().Leave(name);
    Send(grpc::Status::CANCELLED);
  }
  void Send(const grpc::Status& status) {
    counts_.NoteCall(method_, status.error_code(), began_ns_);
    Finish(status);
  }

  CallCounts& counts_;
  const Method method_;
  const int64_t began_ns_;
  std::shared_ptr<Reactor> self_;  // until OnDone
  Mutex mutex_;
  SharedUse use_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_working_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_caller_gone_ ABSL_GUARDED_BY(mutex_) = false;
};

UnaryCall::UnaryCall(CallCounts& counts, Method method)
    : began_ns_(counts.NowNanos()) {
  const std::shared_ptr<Reactor> call = Reactor::New(counts, method, began_ns_);
  call_ = call;
  reactor_ = call.get();
}

void UnaryCall::Answer(absl::FunctionRef<grpc::Status()> make) const {
  if (const auto call = call_.lock()) call->Answer(make);
}

void UnaryCall::Keep(SharedUse use) const {
  if (const auto call = call_.lock()) call->Keep(std::move(use));
}

SharedUse UnaryCall::BeginWork() const {
  const auto call = call_.lock();
  return call == nullptr ? nullptr : call->BeginWork();
}

void UnaryCall::EndWork() const {
  if (const auto call = call_.lock()) call->EndWork();
}

}  // namespace alpheus::rpc
