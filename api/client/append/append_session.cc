// SPDX-License-Identifier: Apache-2.0
#include "api/client/append/append_session.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::client {

size_t Payload::bytes() const {
  size_t sum = 0;
  for (const std::string& part : parts) sum += part.size();
  return sum;
}

absl::StatusOr<uint64_t> AppendSession::Append(Payload payload,
                                               AppendCallback callback) {
  if (state_ == State::kEnded) return ended_;
  if (payload.parts.empty()) {
    return absl::InvalidArgumentError("a request needs a payload");
  }
  const size_t bytes = payload.bytes();
  // One that is larger than the limit goes alone: the service judges its size.
  if (requests_.size() >= limits_.unanswered_max ||
      (!requests_.empty() && bytes_ + bytes > limits_.bytes_max)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        requests_.size(), " requests of ", bytes_,
        " bytes have no answer yet, at most ", limits_.unanswered_max, " of ",
        limits_.bytes_max, " may have none. Append again after an answer"));
  }
  bytes_ += bytes;
  requests_.push_back(
      {next_sequence_, std::move(payload), std::move(callback)});
  return next_sequence_++;
}

void AppendSession::Opened(const Place& client, uint64_t epoch) {
  assert(state_ == State::kNew);
  client_ = client;
  epoch_ = last_epoch_ = epoch;
  resumption_ = 0;
  state_ = State::kReady;
}

uint64_t AppendSession::lowest_unanswered() const {
  return requests_.empty() ? next_sequence_ : requests_.front().sequence;
}

void AppendSession::Lost(std::optional<uint64_t> last_admitted) {
  if (state_ != State::kReady) return;
  state_ = State::kLost;
  for (Request& request : requests_) {
    if (last_admitted && request.sequence > *last_admitted) {
      SetSent(request, false);
    }
  }
  unknown_outcomes_ += sent_;
}

void AppendSession::Resumed(
    uint64_t epoch, uint64_t resumption, uint64_t last,
    std::span<const std::pair<uint64_t, Place>> places) {
  assert(state_ == State::kLost);
  epoch_ = epoch;
  last_epoch_ = std::max(last_epoch_, epoch);
  resumption_ = resumption;
  state_ = State::kReady;
  for (Request& request : requests_) SetSent(request, false);
  while (!requests_.empty() && requests_.front().sequence <= last) {
    const uint64_t sequence = requests_.front().sequence;
    Appended appended;
    for (const auto& [known, place] : places) {
      if (known == sequence) appended.place = place;
    }
    Answer(sequence, appended);
  }
}

void AppendSession::End(const absl::Status& unknown,
                        const absl::Status& not_sent) {
  state_ = State::kEnded;
  ended_ = not_sent;
  while (!requests_.empty()) {
    const Request& first = requests_.front();
    Answer(first.sequence, first.is_sent ? unknown : not_sent);
  }
}

Sending AppendSession::TakeToSend(size_t bytes_max) {
  assert(state_ == State::kReady);
  Sending sending;
  sending.lowest_unanswered = lowest_unanswered();
  sending.resumption = resumption_;
  auto request = std::ranges::find_if(
      requests_, [](const Request& one) { return !one.is_sent; });
  size_t bytes = 0;
  for (; request != requests_.end() && !request->is_sent; ++request) {
    bytes += request->payload.bytes();
    if (!sending.payloads.empty() && bytes > bytes_max) break;
    if (sending.payloads.empty()) {
      sending.first_sequence = request->sequence;
      sending.durability = request->payload.durability;
    }
    if (request->payload.durability != sending.durability) break;
    // A sequence was answered between: the next message has the rest.
    if (request->sequence != sending.first_sequence + sending.payloads.size()) {
      break;
    }
    SetSent(*request, true);
    sending.payloads.push_back(&request->payload);
  }
  return sending;
}

void AppendSession::Done(uint64_t first_sequence, uint64_t count,
                         const std::optional<Place>& first) {
  for (uint64_t i = 0; i < count; ++i) {
    Appended appended;
    if (first) appended.place = {first->epoch, first->lsn + i};
    Answer(first_sequence + i, appended);
  }
}

void AppendSession::Refused(uint64_t sequence, const absl::Status& error) {
  Answer(sequence, error);
}

void AppendSession::SetBack(uint64_t sequence) {
  const auto request = Find(sequence);
  if (request != requests_.end()) SetSent(*request, false);
}

void AppendSession::SetSent(Request& request, bool is_sent) {
  if (request.is_sent == is_sent) return;
  request.is_sent = is_sent;
  is_sent ? ++sent_ : --sent_;
}

std::deque<AppendSession::Request>::iterator AppendSession::Find(
    uint64_t sequence) {
  const auto found =
      std::ranges::lower_bound(requests_, sequence, {}, &Request::sequence);
  return found != requests_.end() && found->sequence == sequence
             ? found
             : requests_.end();
}

void AppendSession::Answer(uint64_t sequence, absl::StatusOr<Appended> answer) {
  const auto found = Find(sequence);
  if (found == requests_.end()) return;
  const AppendCallback callback = std::move(found->callback);
  bytes_ -= found->payload.bytes();
  SetSent(*found, false);
  requests_.erase(found);
  if (callback) callback(std::move(answer));
}

}  // namespace alpheus::client
