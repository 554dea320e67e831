// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/request_error.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>

namespace alpheus::client {

v1::RequestError ErrorIn(const grpc::Status& status) {
  // Field of google.rpc.Status that has the details. It is read without its
  // declaration, which Debian's packages lack.
  constexpr int kDetails = 3;
  v1::RequestError error;
  google::protobuf::Empty bytes;
  if (!bytes.ParseFromString(status.error_details())) return error;
  const google::protobuf::UnknownFieldSet& fields =
      bytes.GetReflection()->GetUnknownFields(bytes);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kDetails ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    google::protobuf::Any any;
    if (any.ParseFromString(field.length_delimited())) any.UnpackTo(&error);
  }
  return error;
}

absl::Status FinalError(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::DATA_LOSS:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return {static_cast<absl::StatusCode>(status.error_code()),
              status.error_message()};
    default:
      return absl::OkStatus();
  }
}

}  // namespace alpheus::client
