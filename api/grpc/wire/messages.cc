// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/wire/messages.h"

#include <string>

#include "log/base/bytes.h"

namespace alpheus::rpc {

AppendRequestParts::AppendRequestParts(const service::ClientId& client,
                                       const service::Request& number,
                                       const v1::Payload& payload) {
  request_.client = client;
  request_.number = number;
  request_.tag = payload.tag();
  if (payload.has_expected_lsn()) {
    request_.expected_lsn = Lsn(payload.expected_lsn());
  }
  request_.only_if_last = payload.only_if_last();
  payloads_.reserve(payload.batch().empty() ? 1 : payload.batch_size());
  for (const std::string& one : payload.batch()) {
    payloads_.push_back(AsBytes(one));
  }
  if (payloads_.empty()) payloads_.push_back(AsBytes(payload.data()));
}

service::AppendRequest AppendRequestParts::Get() const {
  service::AppendRequest request = request_;
  request.payloads = payloads_;
  return request;
}

}  // namespace alpheus::rpc
