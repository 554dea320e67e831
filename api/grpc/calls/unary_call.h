// SPDX-License-Identifier: Apache-2.0
// unary_call: a call with one answer, which may have to wait, and whose caller
// may go before.
//
// Idea: a value, which callbacks copy. It keeps nothing alive: what a log still
// has of a call that is over is a name that names nothing.
//
// Invariants:
//   UNC1. A call is answered once, and counted when it is.
//   UNC2. A call whose caller has gone, or whose deadline has passed, is over
//         at once, whatever it waits for: it leaves the log, and gRPC frees its
//         messages. Records that it has appended stay.
//   UNC3. Request and response are touched only until the call is over: inside
//         of the method, of Answer's function, and between BeginWork and
//         EndWork.
// Thread safety: all members by many threads; BeginWork and EndWork in turn.
#ifndef ALPHEUS_API_GRPC_CALLS_UNARY_CALL_H_
#define ALPHEUS_API_GRPC_CALLS_UNARY_CALL_H_

#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/log_use.h"

namespace alpheus::rpc {

class UnaryCall {
 public:
  // Begins. `counts` must outlive the call.
  UnaryCall(CallCounts& counts, Method method);

  // Sends the answer that `make` returns; it may set the response. Does nothing
  // if the call is over.
  void Answer(absl::FunctionRef<grpc::Status()> make) const;
  void Finish(const grpc::Status& status) const {
    Answer([&] { return status; });
  }
  // Keeps the use of a log until the call is over. Then the call waits for no
  // record of it any more.
  void Keep(SharedUse use) const;

  // Begins to look at the request once more. Returns the use that is kept;
  // null: the call is over. Else it is not over before EndWork, unless it is
  // answered.
  SharedUse BeginWork() const;
  void EndWork() const;

  // Returns what gRPC wants of the method.
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  // Returns the call's name among those that wait.
  const void* name() const { return reactor_; }
  int64_t began_ns() const { return began_ns_; }

 private:
  class Reactor;

  int64_t began_ns_;
  std::weak_ptr<Reactor> call_;
  grpc::ServerUnaryReactor* reactor_;  // valid while the method runs
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_UNARY_CALL_H_
