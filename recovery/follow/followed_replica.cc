// SPDX-License-Identifier: Apache-2.0
#include "recovery/follow/followed_replica.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "log/base/status_macros.h"
#include "log/format/layout.h"

namespace alpheus::recovery {
namespace {

constexpr uint64_t kTailReadBytesMax = uint64_t{1} << 20;
constexpr uint32_t kTailReadsMax = 4;  // reads in flight, at most

}  // namespace

FollowedReplica::FollowedReplica(fabric::Fabric& fabric,
                                 ControlCall::Options at,
                                 const ReadersList& list)
    : fabric_(fabric),
      list_(list),
      control_call_(fabric, std::move(at), View{}) {}

bool FollowedReplica::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  return control_call_.OnConnectionEvent(event);
}

bool FollowedReplica::OnCompletion(const fabric::Completion& completion) {
  const bool is_read = completion.operation == fabric::Operation::kRead;
  const bool was_answered = control_call_.reply().has_value();
  if (!control_call_.OnCompletion(completion)) return false;
  if (!status().ok()) return true;
  absl::Status taken;
  if (is_read) {
    --reads_;
    taken = ContinueReading();
  } else if (!was_answered && control_call_.reply()) {
    taken = OnReply(*control_call_.reply());
  }
  // Asks for the first answer by itself.
  if (taken.ok() && region_key_ != fabric::RegionKey() && !said_ &&
      control_call_.may_ask()) {
    Ask();
  }
  if (!taken.ok()) control_call_.Fail(taken);
  return true;
}

absl::Status FollowedReplica::OnReply(const Message& reply) {
  if (const auto* viewed = std::get_if<Viewed>(&reply)) {
    if (viewed->region_bytes < kTableOffset + ring_capacity()) {
      return absl::DataLossError("the node sent fewer bytes than a region has");
    }
    region_key_ = viewed->region_key;
    ring_offset_ = viewed->region_bytes - ring_capacity();
    return absl::OkStatus();
  }
  const auto* followed = std::get_if<Followed>(&reply);
  if (followed == nullptr || region_key_ == fabric::RegionKey()) {
    return absl::DataLossError(
        "the node replied to a Follow request with a message of another kind. "
        "The node is faulty: see its messages");
  }
  return OnFollowed(*followed);
}

absl::Status FollowedReplica::OnFollowed(const Followed& followed) {
  configuration_id_ = std::max(configuration_id_, followed.configuration_id);
  ALPHEUS_RETURN_IF_ERROR(
      CheckReadersList(list_, {followed.configuration_id,
                               followed.replica_count, followed.write_quorum}));
  const bool is_same = said_ && said_->log_epoch == followed.log_epoch;
  if (!is_same) table_ = followed.table;
  said_ = followed;
  ++answers_;
  return absl::OkStatus();
}

uint64_t FollowedReplica::configuration_id() const {
  return control_call_.is_proved()
             ? std::max(configuration_id_,
                        control_call_.server_hello()->configuration_id)
             : configuration_id_;
}

void FollowedReplica::Ask() {
  control_call_.Ask(Follow{said_ ? said_->log_epoch : Epoch()});
}

void FollowedReplica::Read(const replication::RegisteredBytes& ring,
                           RingOffset from, uint64_t bytes) {
  into_ = &ring;
  place_ = from.value % ring_capacity();
  to_read_ = bytes;
  if (const absl::Status read = ContinueReading(); !read.ok())
    control_call_.Fail(read);
}

absl::Status FollowedReplica::ContinueReading() {
  while (to_read_ > 0 && reads_ < kTailReadsMax) {
    const uint64_t bytes =
        std::min({to_read_, ring_capacity() - place_, kTailReadBytesMax,
                  fabric_.limits().message_bytes_max});
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostRead(control_call_.connection(), fabric::WorkId(place_),
                         {into_->key(), into_->bytes().subspan(place_, bytes)},
                         {region_key_, ring_offset_ + place_}));
    ++reads_;
    to_read_ -= bytes;
    place_ = (place_ + bytes) % ring_capacity();
  }
  return absl::OkStatus();
}

}  // namespace alpheus::recovery
