// SPDX-License-Identifier: Apache-2.0
// primary_finder: finds the node that is primary of a log, by asking them.
//
// Idea: nodes are asked in the order of primary_search.h, one after the other,
// for their status.
//
// Thread safety: one thread at a time, except Cancel and is_cancelled.
#ifndef ALPHEUS_API_CLIENT_GRPC_PRIMARY_FINDER_H_
#define ALPHEUS_API_CLIENT_GRPC_PRIMARY_FINDER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/grpc/channel_security.h"
#include "api/client/grpc/log_client_options.h"
#include "api/client/grpc/node_stubs.h"
#include "api/client/locate/primary_search.h"
#include "log/base/random.h"

namespace alpheus::client {

class PrimaryFinder {
 public:
  using Stub = v1::LogService::Stub;

  // A node that has said that it is the primary.
  struct Primary {
    Stub* stub = nullptr;  // valid as long as the finder
    v1::GetStatusResponse status;
  };

  // The options must outlive it. Requires: they have an address.
  PrimaryFinder(const LogClientOptions& options, ChannelSecurity security);

  // Returns when a call ends that may take so long, in nanoseconds of
  // Clock::Real().
  static int64_t EndOf(absl::Duration timeout);

  // Asks until a node says that it is the primary. Errors: DeadlineExceeded;
  // Cancelled; those that no other node would answer better (request_error.h).
  absl::StatusOr<Primary> Find(int64_t end_ns);
  // Makes a call at one node, which ends at `end_ns` at the latest.
  template <class Request, class Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
                    Stub& stub, const Request& request, int64_t end_ns,
                    Response* response) {
    grpc::ClientContext context;
    if (!Begin(&context, end_ns)) {
      return {grpc::StatusCode::CANCELLED, "cancelled"};
    }
    const grpc::Status status = (stub.*method)(&context, request, response);
    End();
    return status;
  }
  // Asks one node for its status. Waits for answer_ms at most.
  grpc::Status AskStatus(Stub& stub, int64_t end_ns,
                         v1::GetStatusResponse* response);
  // The primary that was found is none any more, and has named another one, or
  // nobody (empty).
  void NotPrimary(const std::string& hint) { search_.NotPrimary(hint); }
  // The primary has answered: the next search need not rest.
  void Answered() { search_.Answered(); }
  // Every call is authorized by it.
  const ChannelSecurity& security() const { return stubs_.security(); }

  // Ends what waits here, and what will.
  void Cancel();
  bool is_cancelled() const { return is_cancelled_; }

 private:
  // Begins a call. Returns false if Cancel was called.
  bool Begin(grpc::ClientContext* context, int64_t end_ns);
  void End();

  const LogClientOptions& options_;
  EntropyRandom random_;
  NodeStubs stubs_;
  PrimarySearch search_;
  // The node to be asked next. A Find that ends before it has asked leaves this
  // to the one after, so that many short ones ask, too.
  std::optional<PrimarySearch::Step> step_;
  std::string last_said_ = "nothing";

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_cancelled_ = false;  // set under the lock
  grpc::ClientContext* asking_ = nullptr;   // the same
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_PRIMARY_FINDER_H_
