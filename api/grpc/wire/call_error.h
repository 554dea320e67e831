// SPDX-License-Identifier: Apache-2.0
// call_error: the errors of the API: a code, a sentence for people, and what a
// client needs to go on.
//
// Idea: log_service.proto says which code means what. All of it is decided
// here, for calls and for streams alike.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_GRPC_WIRE_CALL_ERROR_H_
#define ALPHEUS_API_GRPC_WIRE_CALL_ERROR_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "alpheus/v1/log_service.pb.h"
#include "api/service/log/service_log.h"
#include "api/service/record/service_record.h"
#include "api/service/served/served_logs.h"
#include "log/base/ids.h"

namespace alpheus::rpc {

struct CallError {
  grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
  std::string message;
  v1::RequestError error;

  // The status, with the error in its details: as bytes of a google.rpc.Status,
  // which clients of all languages read.
  grpc::Status ToStatus() const;
};

// A request, as its client names it.
struct RequestName {
  service::ClientId client;
  uint64_t sequence = 0;
  Epoch epoch;    // for which it is meant
  Epoch opening;  // of this node
};

// Returns the error of a log that is not served here. Requires: it is not.
CallError ErrorOf(const service::FoundLog& found);
// Returns the error of a request that is neither kAppended nor kRepeated; if it
// is to be told what became of it, nor kNever.
CallError ErrorOf(const service::Verdict& verdict, const RequestName& request);
// Returns the error of a request whose record may be durable or not.
CallError UnknownOutcome(const RequestName& request, const absl::Status& why);
// Returns the error of what a log said of reading, forcing or cleaning.
CallError ErrorOf(const absl::Status& status, Lsn head);
// Returns the error of a request that no node takes.
CallError Invalid(const std::string& why);
// Returns the error of a caller who may not do that (access.h).
CallError NotAllowed(const absl::Status& why);
// Returns the error of an administrator's order. The codes are those of absl,
// as admin_service.proto says.
CallError ErrorOfOrder(const absl::Status& status);
// Returns an error if there is no such durability.
std::optional<CallError> CheckDurability(v1::Durability durability);
// Returns an error if there is no such consistency.
std::optional<CallError> CheckConsistency(v1::Consistency consistency);
// Returns the error of requests for another opening.
CallError WrongEpoch(Epoch meant, Epoch opening);
// Returns the error of a stream that ends because its log is given back.
CallError HandedOver();

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_WIRE_CALL_ERROR_H_
