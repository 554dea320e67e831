// SPDX-License-Identifier: Apache-2.0
#include "tests/api/client/grpc/scripted_primary.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kEpoch = 1;
// The first client is opened by LSN 1, the next one so many LSNs later. Request
// n of a client is n LSNs after its opening.
constexpr uint64_t kOpenLsn = 1;
constexpr uint64_t kLsnsOfAClient = 1'000'000;

void SetPlace(uint64_t lsn, v1::Place* place) {
  place->set_epoch(kEpoch);
  place->set_lsn(lsn);
}

grpc::Status NoSuchClient() {
  return {grpc::StatusCode::NOT_FOUND, "no such client"};
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

// A client that is opened again by its key is the same one.
grpc::Status ScriptedPrimary::OpenClient(Context* /*context*/,
                                         const v1::OpenClientRequest* request,
                                         v1::OpenClientResponse* response) {
  const std::lock_guard lock(mutex_);
  const uint64_t next = kOpenLsn + clients_.size() * kLsnsOfAClient;
  const uint64_t lsn = opened_.try_emplace(request->key(), next).first->second;
  clients_.try_emplace(lsn);
  keys_.push_back(request->key());
  if (lost_openings_ > 0) {
    --lost_openings_;
    return {grpc::StatusCode::UNAVAILABLE, "the connection ended"};
  }
  SetPlace(lsn, response->mutable_client());
  response->set_epoch(kEpoch);
  return grpc::Status::OK;
}

grpc::Status ScriptedPrimary::ResumeClient(
    Context* /*context*/, const v1::ResumeClientRequest* request,
    v1::ResumeClientResponse* response) {
  const std::lock_guard lock(mutex_);
  const auto client = clients_.find(request->client().lsn());
  if (client == clients_.end()) return NoSuchClient();
  response->set_epoch(kEpoch);
  response->set_resumption(++client->second.resumption);
  response->set_last_sequence(client->second.last);
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
  if (!stream->Read(&request)) return grpc::Status::OK;
  const v1::AppendStreamRequest::Begin begin = request.begin();
  {
    const std::lock_guard lock(mutex_);
    if (!clients_.contains(begin.client().lsn())) return NoSuchClient();
  }
  while (stream->Read(&request)) {
    if (does == Stream::kEnds) {
      return {grpc::StatusCode::UNAVAILABLE, "the script ends it"};
    }
    if (does == Stream::kDropsAndIsSilent) continue;
    const v1::AppendStreamResponse response =
        AppendNew(begin, request.requests());
    if (does == Stream::kAnswers) stream->Write(response);
  }
  return grpc::Status::OK;
}

v1::AppendStreamResponse ScriptedPrimary::AppendNew(
    const v1::AppendStreamRequest::Begin& begin,
    const v1::AppendStreamRequest::Requests& requests) {
  const std::lock_guard lock(mutex_);
  Client& client = clients_.at(begin.client().lsn());
  const uint64_t first = requests.first().sequence();
  v1::AppendStreamResponse response;
  if (begin.resumption() != client.resumption || first > client.last + 1) {
    auto* const refusal = response.add_refused();
    refusal->set_sequence(first);
    refusal->set_code(grpc::StatusCode::ABORTED);
    if (begin.resumption() == client.resumption) {
      refusal->mutable_error()->mutable_out_of_order();
    } else {
      refusal->mutable_error()->mutable_superseded();
    }
    return response;
  }
  v1::Run* const run = response.add_done();
  run->set_first_sequence(first);
  run->set_count(static_cast<uint64_t>(requests.payloads_size()));
  SetPlace(begin.client().lsn() + first, run->mutable_first());
  std::string message;
  for (int i = 0; i < requests.payloads_size(); ++i) {
    if (first + static_cast<uint64_t>(i) <= client.last) continue;
    client.last = first + static_cast<uint64_t>(i);
    appended_.push_back(requests.payloads(i).data());
    message += requests.payloads(i).data();
  }
  messages_.push_back(std::move(message));
  return response;
}

}  // namespace alpheus::testing
