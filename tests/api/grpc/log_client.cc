// SPDX-License-Identifier: Apache-2.0
#include "tests/api/grpc/log_client.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <utility>

namespace alpheus::testing {

v1::RequestError ErrorIn(const grpc::Status& status) {
  // A google.rpc.Status, read without its declaration: field 3 has an Any.
  v1::RequestError error;
  google::protobuf::Empty bytes;
  if (!bytes.ParseFromString(status.error_details())) return error;
  const google::protobuf::UnknownFieldSet& fields =
      bytes.GetReflection()->GetUnknownFields(bytes);
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() != 3) continue;
    google::protobuf::Any any;
    if (any.ParseFromString(fields.field(i).length_delimited())) {
      any.UnpackTo(&error);
    }
  }
  return error;
}

v1::Payload PayloadOf(const std::string& data) {
  v1::Payload payload;
  payload.set_data(data);
  return payload;
}

namespace {

// gRPC would share a connection, and with it a handshake.
grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // what is under way is small
  return arguments;
}

}  // namespace

LogClient::LogClient(const std::string& address)
    : LogClient(address, grpc::InsecureChannelCredentials(), "") {}

LogClient::LogClient(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    std::string shown)
    : token(std::move(shown)),
      channel_(
          grpc::CreateCustomChannel(address, credentials, OwnConnection())),
      stub_(v1::LogService::NewStub(channel_)) {}

void LogClient::Authorize(grpc::ClientContext* context) const {
  if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
}

grpc::Status LogClient::Open() {
  grpc::ClientContext context;
  Authorize(&context);
  v1::OpenClientRequest request;
  request.set_log("main");
  v1::OpenClientResponse response;
  const grpc::Status status = stub_->OpenClient(&context, request, &response);
  client = response.client();
  epoch = response.epoch();
  resumption = 0;
  next = 1;
  return status;
}

grpc::Status LogClient::Resume(uint64_t lowest_unanswered, uint64_t last_epoch,
                               v1::ResumeClientResponse* response) {
  grpc::ClientContext context;
  Authorize(&context);
  v1::ResumeClientRequest request;
  request.set_log("main");
  *request.mutable_client() = client;
  request.set_lowest_unanswered(lowest_unanswered);
  request.set_last_epoch(last_epoch);
  const grpc::Status status = stub_->ResumeClient(&context, request, response);
  if (status.ok()) {
    epoch = response->epoch();
    resumption = response->resumption();
  }
  return status;
}

v1::AppendRequest LogClient::Request(const std::string& data) const {
  return Request(next, data);
}

v1::AppendRequest LogClient::Request(uint64_t sequence,
                                     const std::string& data) const {
  v1::AppendRequest request;
  request.set_log("main");
  request.set_epoch(epoch);
  *request.mutable_client() = client;
  request.mutable_number()->set_sequence(sequence);
  request.mutable_number()->set_lowest_unanswered(sequence);
  request.set_resumption(resumption);
  request.mutable_payload()->set_data(data);
  return request;
}

grpc::Status LogClient::Append(const std::string& data,
                               v1::AppendResponse* response) {
  const grpc::Status status = Append(Request(data), response);
  if (status.ok()) ++next;
  return status;
}

grpc::Status LogClient::Append(const v1::AppendRequest& request,
                               v1::AppendResponse* response) {
  grpc::ClientContext context;
  Authorize(&context);
  return stub_->Append(&context, request, response);
}

grpc::Status LogClient::Resolve(uint64_t sequence, uint64_t last_epoch,
                                v1::ResolveResponse* response) {
  grpc::ClientContext context;
  Authorize(&context);
  v1::ResolveRequest request;
  request.set_log("main");
  *request.mutable_client() = client;
  request.set_sequence(sequence);
  request.set_last_epoch(last_epoch);
  return stub_->Resolve(&context, request, response);
}

grpc::Status LogClient::Read(const v1::ReadRequest& request,
                             std::vector<v1::Record>* records) {
  grpc::ClientContext context;
  Authorize(&context);
  const auto reader = stub_->Read(&context, request);
  v1::ReadResponse response;
  while (reader->Read(&response)) {
    records->insert(records->end(), response.records().begin(),
                    response.records().end());
  }
  return reader->Finish();
}

std::vector<std::string> LogClient::ReadAll() {
  v1::ReadRequest request;
  request.set_log("main");
  std::vector<v1::Record> records;
  const grpc::Status status = Read(request, &records);
  std::vector<std::string> payloads;
  if (!status.ok()) payloads.push_back(status.error_message());
  for (const v1::Record& record : records) {
    payloads.insert(payloads.end(), record.payloads().begin(),
                    record.payloads().end());
  }
  return payloads;
}

AppendingStream::AppendingStream(LogClient& client,
                                 v1::AppendStreamRequest::Begin begin)
    : AppendingStream(client, true, std::move(begin)) {}

AppendingStream::AppendingStream(LogClient& client, bool begins,
                                 v1::AppendStreamRequest::Begin begin) {
  client.Authorize(&context_);
  stream_ = client.stub().AppendStream(&context_);
  if (!begins) return;
  if (begin.log().empty()) begin.set_log("main");
  if (begin.epoch() == 0) begin.set_epoch(client.epoch);
  *begin.mutable_client() = client.client;
  begin.set_resumption(client.resumption);
  v1::AppendStreamRequest request;
  *request.mutable_begin() = std::move(begin);
  stream_->Write(request);
}

std::unique_ptr<AppendingStream> AppendingStream::WithoutBegin(
    LogClient& client) {
  return std::unique_ptr<AppendingStream>(
      new AppendingStream(client, false, {}));
}

bool AppendingStream::Send(uint64_t first,
                           const std::vector<std::string>& payloads,
                           uint64_t lowest_unanswered) {
  v1::AppendStreamRequest request;
  v1::AppendStreamRequest::Requests* const requests =
      request.mutable_requests();
  requests->mutable_first()->set_sequence(first);
  requests->mutable_first()->set_lowest_unanswered(lowest_unanswered);
  for (const std::string& payload : payloads) {
    requests->add_payloads()->set_data(payload);
  }
  return stream_->Write(request);
}

bool AppendingStream::ReadOne() {
  v1::AppendStreamResponse response;
  if (!stream_->Read(&response)) return false;
  for (const auto& run : response.done()) done += run.count();
  answers.MergeFrom(response);
  return true;
}

bool AppendingStream::ReadUntilDone(uint64_t count) {
  while (done < count) {
    if (answers.has_last_admitted() || !ReadOne()) return false;
  }
  return true;
}

grpc::Status AppendingStream::Finish() {
  stream_->WritesDone();
  while (ReadOne()) {
  }
  return stream_->Finish();
}

}  // namespace alpheus::testing
