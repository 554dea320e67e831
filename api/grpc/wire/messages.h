// SPDX-License-Identifier: Apache-2.0
// messages: the service's values, as messages of the API.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_GRPC_WIRE_MESSAGES_H_
#define ALPHEUS_API_GRPC_WIRE_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "alpheus/durability_plan.h"
#include "alpheus/log_epoch.h"
#include "alpheus/recovery_report.h"
#include "alpheus/replication_status.h"
#include "alpheus/v1/log_service.pb.h"
#include "api/service/clients/client_requests.h"
#include "api/service/log/service_log.h"
#include "api/service/record/service_record.h"
#include "log/base/ids.h"
#include "log/core/durability/persisted_by.h"

namespace alpheus::rpc {

// Largest message that the server takes.
inline constexpr size_t kMessageBytesMax = size_t{16} << 20;
// Room in a message beside its payload.
inline constexpr size_t kMessageHeadBytes = size_t{64} << 10;

inline void SetPlace(const service::Place& place, v1::Place* out) {
  out->set_epoch(place.epoch.value);
  out->set_lsn(place.lsn.value);
}

inline service::Place PlaceOf(const v1::Place& place) {
  return {Epoch(place.epoch()), Lsn(place.lsn())};
}

inline service::ClientId ClientOf(const v1::Place& place) {
  return {PlaceOf(place)};
}

inline service::Request NumberOf(const v1::RequestNumber& number,
                                 uint64_t resumption) {
  return {number.sequence(), number.lowest_unanswered(), resumption};
}

void SetReplicas(const ReplicationStatus& status, v1::Replicas* out);
void SetPlan(const DurabilityPlan& plan, v1::DescribeDurabilityResponse* out);
void SetEpochs(const std::vector<LogEpoch>& epochs,
               const RecoveryReport& report, v1::ListEpochsResponse* out);

// Returns which replicas must have persisted a record before its request is
// answered; nullopt: none. Requires: there is such a durability.
std::optional<PersistedBy> PersistedByOf(v1::Durability durability);

// Returns what a read shows. Requires: there is such a consistency.
inline service::Consistency ConsistencyOf(v1::Consistency consistency) {
  return consistency == v1::CONSISTENCY_LOCAL
             ? service::Consistency::kLocal
             : service::Consistency::kLinearizable;
}

// Adds a request to the last run, if it goes on where that ends, or begins
// another one.
void AddToRuns(uint64_t sequence, const std::optional<service::Place>& place,
               bool is_repeat,
               google::protobuf::RepeatedPtrField<v1::Run>* runs);

// A request to append, and its payloads, which are parts of the message. The
// message must outlive it.
class AppendRequestParts {
 public:
  AppendRequestParts(const service::ClientId& client,
                     const service::Request& number,
                     const v1::Payload& payload);

  // Valid while this object stays where it is.
  service::AppendRequest Get() const;

 private:
  service::AppendRequest request_;
  // Most requests have one payload.
  absl::InlinedVector<std::span<const std::byte>, 1> payloads_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_WIRE_MESSAGES_H_
