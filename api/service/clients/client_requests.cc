// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_requests.h"

#include <algorithm>

namespace alpheus::service {

ClientRequests::ClientRequests(const TableEntry& entry)
    : last_(entry.sequence),
      last_place_(entry.place),
      is_closed_(entry.is_closed) {
  if (last_ > 0 && !is_closed_) places_.push_back({last_, last_place_});
}

Judgement ClientRequests::Judge(const Request& request) {
  Judgement judgement;
  if (request.sequence == 0 || request.lowest_unanswered == 0 ||
      request.lowest_unanswered > request.sequence ||
      request.resumption > resumption_) {
    return judgement;
  }
  if (request.resumption < resumption_) {  // CLR4
    judgement.admission = Admission::kSuperseded;
    return judgement;
  }
  ForgetBelow(request.lowest_unanswered);
  if (request.sequence <= last_) return Earlier(request.sequence);
  if (is_closed_) {
    judgement.admission = Admission::kClosed;
    judgement.durable_with = last_place_;
    return judgement;
  }
  if (request.sequence - request.lowest_unanswered >= kPlacesMax) {
    judgement.admission = Admission::kTooMany;
    return judgement;
  }
  judgement.expected = std::max(last_ + 1, request.lowest_unanswered);
  judgement.admission = request.sequence <= judgement.expected  // CLR2
                            ? Admission::kAdmitted
                            : Admission::kOutOfOrder;
  return judgement;
}

// CLR3. A sequence below the last one is durable once that one is: its record
// is before the last one's.
Judgement ClientRequests::Earlier(uint64_t sequence) const {
  Judgement judgement;
  judgement.admission = Admission::kRepeated;
  judgement.durable_with = last_place_;
  const auto found =
      std::ranges::lower_bound(places_, sequence, {}, &Placed::sequence);
  if (found == places_.end() || found->sequence != sequence) return judgement;
  judgement.durable_with = found->place;
  judgement.place = found->place;
  return judgement;
}

uint64_t ClientRequests::Resume(uint64_t lowest_unanswered) {
  ForgetBelow(lowest_unanswered);
  return ++resumption_;
}

void ClientRequests::Note(uint64_t sequence, const Place& place) {
  if (sequence <= last_) return;
  last_ = sequence;
  last_place_ = place;
  places_.push_back({sequence, place});
  if (places_.size() > kPlacesMax) places_.pop_front();
}

void ClientRequests::NoteEnd(uint64_t sequence, const Place& place) {
  if (sequence < last_ || is_closed_) return;
  last_ = sequence;
  last_place_ = place;
  is_closed_ = true;
}

void ClientRequests::Join(const TableEntry& entry) {
  if (entry.is_closed) {
    NoteEnd(entry.sequence, entry.place);
  } else {
    Note(entry.sequence, entry.place);
  }
}

TableEntry ClientRequests::ToEntry(ClientId client) const {
  return {client, last_, last_place_, is_closed_};
}

void ClientRequests::ForgetBelow(uint64_t sequence) {
  while (!places_.empty() && places_.front().sequence < sequence) {
    places_.pop_front();
  }
}

}  // namespace alpheus::service
