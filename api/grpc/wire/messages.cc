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

v1::DescribeDurabilityResponse::Medium MediumOf(DurabilityMedium medium) {
  using Response = v1::DescribeDurabilityResponse;
  switch (medium) {
    case DurabilityMedium::kPersistentMemory:
      return Response::MEDIUM_PERSISTENT_MEMORY;
    case DurabilityMedium::kShadow:
      return Response::MEDIUM_SHADOW;
    case DurabilityMedium::kFile:
      return Response::MEDIUM_FILE;
    case DurabilityMedium::kProcessMemory:
      return Response::MEDIUM_PROCESS_MEMORY;
    case DurabilityMedium::kUnknown:
      break;
  }
  return Response::MEDIUM_UNSPECIFIED;
}

// Returns 0 for moments that were not noted.
uint64_t NanosBetween(int64_t begin, int64_t end) {
  return begin == 0 || end <= begin ? 0 : static_cast<uint64_t>(end - begin);
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

void SetPlan(const DurabilityPlan& plan, v1::DescribeDurabilityResponse* out) {
  for (const ReplicaDurability& member : plan.members) {
    v1::DescribeDurabilityResponse::Replica* const replica =
        out->add_replicas();
    replica->set_node(member.node);
    replica->set_address(member.address);
    replica->set_is_primary(member.is_own);
    replica->set_in_sync(member.in_sync);
    replica->set_medium(MediumOf(member.medium));
    replica->set_platform(member.platform);
    for (const std::string& step : member.steps) replica->add_steps(step);
    replica->set_row(member.row);
  }
  out->set_count(plan.replicas);
  out->set_write_quorum(plan.write_quorum);
  out->set_lost_replicas_max(plan.write_quorum - 1);
  out->set_absent_replicas_max(plan.replicas - plan.write_quorum);
}

void SetEpochs(const std::vector<LogEpoch>& epochs,
               const RecoveryReport& report, v1::ListEpochsResponse* out) {
  for (const LogEpoch& epoch : epochs) {
    v1::ListEpochsResponse::LogEpoch* const listed = out->add_epochs();
    listed->set_epoch(epoch.epoch.value);
    listed->set_node(epoch.node);
    listed->set_first_lsn(epoch.start_lsn.value);
    listed->set_last_lsn(epoch.end_lsn.value);
  }
  v1::ListEpochsResponse::Opening* const opening = out->mutable_opening();
  opening->set_epoch(report.epoch.value);
  opening->set_previous_epoch(report.previous_epoch.value);
  opening->set_head_lsn(report.head_lsn.value);
  opening->set_end_lsn(report.end_lsn.value);
  for (const std::string& repair : report.repairs) opening->add_repairs(repair);
  for (const std::string& absent : report.absent_members) {
    opening->add_absent_members(absent);
  }
  const OpeningMoments& at = report.moments;
  opening->set_promise_ns(NanosBetween(at.began_ns, at.promised_ns));
  opening->set_choice_ns(NanosBetween(at.promised_ns, at.chosen_ns));
  opening->set_install_ns(NanosBetween(at.chosen_ns, at.installed_ns));
  opening->set_open_ns(NanosBetween(at.installed_ns, at.opened_ns));
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
