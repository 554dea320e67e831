// SPDX-License-Identifier: Apache-2.0
#include "tests/api/client/grpc/scripted_primary.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kEpoch = 1;
constexpr uint64_t kOpenLsn = 1;  // LSN n + 1 has request n

void SetPlace(uint64_t lsn, v1::Place* place) {
  place->set_epoch(kEpoch);
  place->set_lsn(lsn);
}

}  // namespace

ScriptedPrimary::ScriptedPrimary(std::deque<Stream> script, int lost_openings)
    : script_(std::move(script)), lost_openings_(lost_openings) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

ScriptedPrimary::~ScriptedPrimary() {
  // Ends silent streams at once.
  if (server_) server_->Shutdown(gpr_inf_past(GPR_CLOCK_REALTIME));
}

std::string ScriptedPrimary::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

std::vector<std::string> ScriptedPrimary::appended() const {
  const std::lock_guard lock(mutex_);
  return appended_;
}

std::vector<std::string> ScriptedPrimary::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

std::vector<std::string> ScriptedPrimary::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

int ScriptedPrimary::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_;
}

int ScriptedPrimary::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

grpc::Status ScriptedPrimary::OpenClient(Context* /*context*/,
                                         const v1::OpenClientRequest* request,
                                         v1::OpenClientResponse* response) {
  {
    const std::lock_guard lock(mutex_);
    keys_.push_back(request->key());
    if (lost_openings_ > 0) {
      --lost_openings_;
      return {grpc::StatusCode::UNAVAILABLE, "the connection ended"};
    }
  }
  SetPlace(kOpenLsn, response->mutable_client());
  response->set_epoch(kEpoch);
  return grpc::Status::OK;
}

grpc::Status ScriptedPrimary::ResumeClient(
    Context* /*context*/, const v1::ResumeClientRequest* /*request*/,
    v1::ResumeClientResponse* response) {
  const std::lock_guard lock(mutex_);
  response->set_epoch(kEpoch);
  response->set_resumption(++resumption_);
  response->set_last_sequence(appended_.size());
  return grpc::Status::OK;
}

grpc::Status ScriptedPrimary::CloseClient(
    Context* /*context*/, const v1::CloseClientRequest* /*request*/,
    v1::CloseClientResponse* /*response*/) {
  const std::lock_guard lock(mutex_);
  ++closed_;
  return grpc::Status::OK;
}

grpc::Status ScriptedPrimary::AppendStream(
    Context* /*context*/,
    grpc::ServerReaderWriter<v1::AppendStreamResponse, v1::AppendStreamRequest>*
        stream) {
  Stream does = Stream::kAnswers;
  {
    const std::lock_guard lock(mutex_);
    ++streams_;
    if (!script_.empty()) {
      does = script_.front();
      script_.pop_front();
    }
  }
  v1::AppendStreamRequest request;
  while (stream->Read(&request)) {
    if (!request.has_requests()) continue;
    if (does == Stream::kEnds) {
      return {grpc::StatusCode::UNAVAILABLE, "the script ends it"};
    }
    if (does == Stream::kDropsAndIsSilent) continue;
    const v1::AppendStreamRequest::Requests& requests = request.requests();
    v1::AppendStreamResponse response;
    v1::Run* const run = response.add_done();
    run->set_first_sequence(requests.first().sequence());
    run->set_count(static_cast<uint64_t>(requests.payloads_size()));
    SetPlace(kOpenLsn + requests.first().sequence(), run->mutable_first());
    {
      const std::lock_guard lock(mutex_);
      std::string& message = messages_.emplace_back();
      for (const v1::Payload& payload : requests.payloads()) {
        appended_.push_back(payload.data());
        message += payload.data();
      }
    }
    if (does == Stream::kAnswers) stream->Write(response);
  }
  return grpc::Status::OK;
}

}  // namespace alpheus::testing
