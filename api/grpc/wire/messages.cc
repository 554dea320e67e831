// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/wire/messages.h"

#include <string>

#include "log/base/bytes.h"

namespace alpheus::rpc {
namespace {

// Returns whether a request goes on where a run ends.
bool Continues(const v1::Run& run, uint64_t sequence,
               const std::optional<service::Place>& place, bool is_repeat) {
  if (run.first_sequence() + run.count() != sequence ||
      run.repeated() != is_repeat || run.has_first() != place.has_value()) {
    return false;
  }
  if (!place) return true;
  return run.first().epoch() == place->epoch.value &&
         run.first().lsn() + run.count() == place->lsn.value;
}

}  // namespace

void SetReplicas(const ReplicationStatus& status, v1::Replicas* out) {
  out->set_count(status.replicas);
  out->set_write_quorum(status.write_quorum);
  out->set_in_sync(status.in_sync);
  for (const std::string& member : status.out_of_sync) {
    out->add_out_of_sync(member);
  }
  out->set_joining(status.joining);
}

std::optional<PersistedBy> PersistedByOf(v1::Durability durability) {
  switch (durability) {
    case v1::DURABILITY_ACCEPTED:
      return std::nullopt;
    case v1::DURABILITY_LOCAL:
      return PersistedBy::kOwnReplica;
    case v1::DURABILITY_ALL:
      return PersistedBy::kAllInSync;
    default:
      return PersistedBy::kQuorum;
  }
}

void AddToRuns(uint64_t sequence, const std::optional<service::Place>& place,
               bool is_repeat,
               google::protobuf::RepeatedPtrField<v1::Run>* runs) {
  if (!runs->empty() &&
      Continues(*runs->rbegin(), sequence, place, is_repeat)) {
    runs->rbegin()->set_count(runs->rbegin()->count() + 1);
    return;
  }
  v1::Run* const run = runs->Add();
  run->set_first_sequence(sequence);
  run->set_count(1);
  if (place) SetPlace(*place, run->mutable_first());
  run->set_repeated(is_repeat);
}

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
