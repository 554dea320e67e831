// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_requests.h"

#include <algorithm>

namespace alpheus::service {

ClientRequests::ClientRequests(const TableEntry& entry)
    : last_(entry.sequence), last_place_(entry.place), state_(entry.state) {
  if (last_ > 0 && state_ != LastRequest::kClosed) {
    known_.push_back({last_, last_place_, state_ == LastRequest::kVoid});
  }
}

Judgement ClientRequests::Judge(const Request& request) {
  Judgement judgement;
  if (request.sequence == 0 || request.lowest_unanswered == 0 ||
      request.lowest_unanswered > request.sequence) {
    return judgement;
  }
  unanswered_ = std::max(unanswered_, request.lowest_unanswered);
  ForgetBelow(unanswered_);
  if (request.sequence <= last_) return Earlier(request.sequence);
  if (is_closed()) {
    judgement.admission = Admission::kClosed;
    judgement.durable_with = last_place_;
    return judgement;
  }
  if (request.sequence == refused_) {
    judgement.admission = Admission::kRefused;
    judgement.durable_with.lsn = refused_before_ - 1;
    judgement.expected = refused_before_.value;
    return judgement;
  }
  judgement.expected = std::max(last_ + 1, unanswered_);
  judgement.admission = Admission::kOutOfOrder;
  if (request.sequence < unanswered_) return judgement;  // CLR6
  if (request.sequence - unanswered_ >= kPlacesMax) {
    judgement.admission = Admission::kTooMany;
    return judgement;
  }
  const bool is_void_unanswered =
      state_ == LastRequest::kVoid && unanswered_ <= last_;             // CLR4
  if (request.sequence <= judgement.expected && !is_void_unanswered) {  // CLR2
    judgement.admission = Admission::kAdmitted;
  }
  return judgement;
}

void ClientRequests::Refuse(uint64_t sequence, Lsn next) {
  refused_ = sequence;
  refused_before_ = next;
}

// CLR3, CLR4. A sequence below the last one is durable once that one is: its
// record is before the last one's.
Judgement ClientRequests::Earlier(uint64_t sequence) const {
  Judgement judgement;
  judgement.admission = Admission::kRepeated;
  judgement.durable_with = last_place_;
  const auto found =
      std::ranges::lower_bound(known_, sequence, {}, &Known::sequence);
  if (found == known_.end() || found->sequence != sequence) return judgement;
  judgement.durable_with = found->place;
  if (found->is_void) {
    judgement.admission = Admission::kVoided;
  } else {
    judgement.place = found->place;
  }
  return judgement;
}

void ClientRequests::Note(uint64_t sequence, const Place& place,
                          LastRequest state) {
  const bool is_close = state == LastRequest::kClosed;
  if (sequence < last_ || (sequence == last_ && !is_close)) return;
  last_ = sequence;
  last_place_ = place;
  state_ = state;
  if (is_close) return;
  known_.push_back({sequence, place, state == LastRequest::kVoid});
  if (known_.size() > kPlacesMax) known_.pop_front();
}

void ClientRequests::Join(const TableEntry& entry) {
  Note(entry.sequence, entry.place, entry.state);
}

TableEntry ClientRequests::ToEntry(ClientId client) const {
  return {client, last_, last_place_, state_};
}

void ClientRequests::ForgetBelow(uint64_t sequence) {
  while (!known_.empty() && known_.front().sequence < sequence) {
    known_.pop_front();
  }
}

}  // namespace alpheus::service
