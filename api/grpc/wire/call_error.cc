// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/wire/call_error.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/grpc/wire/messages.h"

namespace alpheus::rpc {
namespace {

using service::Finding;

// Tags of google.rpc.Status: code, message, details.
constexpr uint32_t kCodeTag = (1 << 3) | 0;
constexpr uint32_t kMessageTag = (2 << 3) | 2;
constexpr uint32_t kDetailsTag = (3 << 3) | 2;

CallError Make(grpc::StatusCode code, std::string message) {
  return {code, std::move(message), {}};
}

std::string NameOf(const RequestName& request) {
  return absl::StrCat("request ", request.sequence, " of client ",
                      request.client.ToString());
}

void WriteBytes(uint32_t tag, const std::string& bytes,
                google::protobuf::io::CodedOutputStream* out) {
  out->WriteTag(tag);
  out->WriteVarint32(static_cast<uint32_t>(bytes.size()));
  out->WriteString(bytes);
}

}  // namespace

grpc::Status CallError::ToStatus() const {
  if (error.kind_case() == v1::RequestError::KIND_NOT_SET) {
    return {code, message};
  }
  google::protobuf::Any any;
  any.PackFrom(error);
  std::string details;
  {
    google::protobuf::io::StringOutputStream bytes(&details);
    google::protobuf::io::CodedOutputStream out(&bytes);
    out.WriteTag(kCodeTag);
    out.WriteVarint32(static_cast<uint32_t>(code));
    WriteBytes(kMessageTag, message, &out);
    WriteBytes(kDetailsTag, any.SerializeAsString(), &out);
  }
  return {code, message, details};
}

CallError ErrorOf(const service::FoundLog& found) {
  const std::string message(found.status.message());
  if (absl::IsNotFound(found.status)) {
    return Make(grpc::StatusCode::NOT_FOUND, message);
  }
  if (absl::IsFailedPrecondition(found.status)) {
    return Make(grpc::StatusCode::FAILED_PRECONDITION, message);
  }
  CallError error = Make(grpc::StatusCode::UNAVAILABLE, message);
  v1::NotPrimary* const other = error.error.mutable_not_primary();
  other->set_node(found.primary.node);
  other->set_address(found.address);
  other->set_epoch(found.primary.epoch.value);
  return error;
}

CallError ErrorOf(const service::Verdict& verdict, const RequestName& request) {
  CallError error;
  switch (verdict.finding) {
    case Finding::kTailMismatch:
      error = Make(grpc::StatusCode::FAILED_PRECONDITION,
                   absl::StrCat(NameOf(request),
                                ": its condition does not hold; the next "
                                "record gets LSN ",
                                verdict.expected));
      error.error.mutable_tail_mismatch()->set_next_lsn(verdict.expected);
      return error;
    case Finding::kOutOfOrder:
      error =
          Make(grpc::StatusCode::FAILED_PRECONDITION,
               absl::StrCat(NameOf(request), " came before its turn; next is ",
                            verdict.expected));
      error.error.mutable_out_of_order()->set_expected_sequence(
          verdict.expected);
      return error;
    case Finding::kSuperseded:
      error = Make(grpc::StatusCode::FAILED_PRECONDITION,
                   absl::StrCat(NameOf(request),
                                " was sent before its client resumed, perhaps "
                                "in another process; nothing was written"));
      error.error.mutable_superseded();
      return error;
    case Finding::kClosed:
      error = Make(
          grpc::StatusCode::FAILED_PRECONDITION,
          absl::StrCat("client ", request.client.ToString(), " has ended"));
      error.error.mutable_client_ended();
      return error;
    case Finding::kWrongEpoch:
      return WrongEpoch(request.epoch, request.opening);
    case Finding::kTooMany:
      return Make(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat(NameOf(request), ": ", service::kPlacesMax,
                               " requests of the client have no answer yet"));
    case Finding::kNoRoom:
      return Make(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat(NameOf(request),
                               ": no room in the log now; send it again later, "
                               "or clean"));
    case Finding::kHeldUp:
      return Make(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat(NameOf(request),
                               ": the log waits for its members now; send it "
                               "again later"));
    case Finding::kTooExposed:
      return Make(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat(NameOf(request),
                               ": more records would be exposed with it than "
                               "its stream allows; send it again later"));
    case Finding::kTooFast:
      return Make(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat(NameOf(request),
                               ": its token has used up its rate at this node "
                               "for now; send it again later"));
    case Finding::kTooLarge:
      return Make(
          grpc::StatusCode::INVALID_ARGUMENT,
          absl::StrCat(NameOf(request), " fits into no record; at most ",
                       verdict.expected, " bytes do"));
    case Finding::kUnknownClient:
      return Make(grpc::StatusCode::NOT_FOUND,
                  absl::StrCat("client ", request.client.ToString(),
                               " is not known: it was never opened here, or "
                               "has ended long ago"));
    case Finding::kFailed:
      error = Make(grpc::StatusCode::UNAVAILABLE,
                   absl::StrCat(NameOf(request),
                                ": the log has failed, and nothing was "
                                "written; ask for the next primary"));
      error.error.mutable_not_primary();
      return error;
    default:
      return Invalid(
          absl::StrCat(NameOf(request), ": no client numbers its requests so"));
  }
}

CallError UnknownOutcome(const RequestName& request, const absl::Status& why) {
  CallError error = Make(
      grpc::StatusCode::ABORTED,
      absl::StrCat(NameOf(request), " may be in the log or not: ",
                   std::string(why.message()), ". Resume the client to know"));
  v1::OutcomeUnknown* const unknown = error.error.mutable_outcome_unknown();
  SetPlace(request.client.opened, unknown->mutable_client());
  unknown->set_sequence(request.sequence);
  unknown->set_epoch(request.epoch.value);
  return error;
}

CallError ErrorOf(const absl::Status& status, Lsn head) {
  const std::string message(status.message());
  CallError error;
  switch (status.code()) {
    case absl::StatusCode::kOutOfRange:
      error = Make(grpc::StatusCode::OUT_OF_RANGE, message);
      error.error.mutable_out_of_log()->set_head_lsn(head.value);
      return error;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
      return Make(grpc::StatusCode::DATA_LOSS, message);
    case absl::StatusCode::kInvalidArgument:
      return Make(grpc::StatusCode::INVALID_ARGUMENT, message);
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return Make(grpc::StatusCode::FAILED_PRECONDITION, message);
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
      return Make(grpc::StatusCode::RESOURCE_EXHAUSTED, message);
    default:
      error = Make(grpc::StatusCode::UNAVAILABLE, message);
      error.error.mutable_not_primary();
      return error;
  }
}

CallError Invalid(const std::string& why) {
  return Make(grpc::StatusCode::INVALID_ARGUMENT, why);
}

CallError NotAllowed(const absl::Status& why) {
  return Make(static_cast<grpc::StatusCode>(why.code()),
              std::string(why.message()));
}

CallError ErrorOfOrder(const absl::Status& status) {
  return Make(static_cast<grpc::StatusCode>(status.code()),
              std::string(status.message()));
}

std::optional<CallError> CheckDurability(v1::Durability durability) {
  if (v1::Durability_IsValid(durability)) return std::nullopt;
  return Invalid(absl::StrCat("durability ", static_cast<int>(durability),
                              ": there is no such one"));
}

std::optional<CallError> CheckConsistency(v1::Consistency consistency) {
  if (v1::Consistency_IsValid(consistency)) return std::nullopt;
  return Invalid(absl::StrCat("consistency ", static_cast<int>(consistency),
                              ": there is no such one"));
}

CallError WrongEpoch(Epoch meant, Epoch opening) {
  CallError error =
      Make(grpc::StatusCode::FAILED_PRECONDITION,
           absl::StrCat("the request is meant for epoch ", meant.value,
                        ", and this node has opened the log in epoch ",
                        opening.value));
  error.error.mutable_wrong_epoch()->set_epoch(opening.value);
  return error;
}

CallError HandedOver() {
  CallError error = Make(grpc::StatusCode::UNAVAILABLE,
                         "this node gives the log back, and ends its streams; "
                         "ask for the next primary");
  error.error.mutable_not_primary();
  return error;
}

}  // namespace alpheus::rpc
