// SPDX-License-Identifier: Apache-2.0
// unary_call: a call with one answer, which is counted when it is answered.
//
// It is a value, which callbacks copy, so that a call has no memory of its own
// but gRPC's.
//
// Thread safety: one thread at a time.
#ifndef ALPHEUS_API_GRPC_CALLS_UNARY_CALL_H_
#define ALPHEUS_API_GRPC_CALLS_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <cstdint>

#include "api/grpc/calls/call_counts.h"

namespace alpheus::rpc {

class UnaryCall {
 public:
  // `counts` must outlive the call.
  UnaryCall(grpc::CallbackServerContext* context, CallCounts& counts,
            Method method)
      : reactor_(context->DefaultReactor()),
        counts_(&counts),
        method_(method),
        began_ns_(counts.NowNanos()) {}

  // Sends the answer. Called once, by one of the copies.
  void Finish(const grpc::Status& status) const {
    // The call may be over as soon as it is answered.
    counts_->NoteCall(method_, status.error_code(), began_ns_);
    reactor_->Finish(status);
  }
  // Returns what gRPC wants of the method.
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  int64_t began_ns() const { return began_ns_; }

 private:
  grpc::ServerUnaryReactor* reactor_;
  CallCounts* counts_;
  Method method_;
  int64_t began_ns_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_UNARY_CALL_H_
