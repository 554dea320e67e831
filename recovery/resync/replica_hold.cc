// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/replica_hold.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"

namespace alpheus {

ReplicaHold::ReplicaHold(Fabric& fabric, const Clock& clock,
                         ReplicaHoldOptions options)
    : fabric_(fabric), clock_(clock), options_(std::move(options)) {}

bool ReplicaHold::Take(const ConnectionEvent& event) {
  if (!inquiry_ || !inquiry_->Take(event)) return false;
  next_poll_ns_ = 0;
  return true;
}

bool ReplicaHold::Take(const Completion& completion) {
  if (!inquiry_ || !inquiry_->Take(completion)) return false;
  next_poll_ns_ = 0;
  return true;
}

Polled ReplicaHold::Poll() {
  if (wanted_) return Polled::kDone;
  if (clock_.NowNanos() < next_poll_ns_) return Polled::kIdle;
  if (!inquiry_) Connect();
  next_poll_ns_ = Deadline().at_nanos();  // when something was taken
  if (!inquiry_->status().ok()) {
    TryLater(!absl::IsUnavailable(inquiry_->status()));
  } else if (inquiry_->may_ask()) {
    TakeReply();
  }
  return wanted_ ? Polled::kDone : Polled::kIdle;
}

// Waits longer after each refusal: a region that is not one of the node's own
// is wanted by nobody, unless it is brought there.
void ReplicaHold::TryLater(bool is_refused) {
  constexpr int kDoublingsMax = 5;
  const int doublings = is_refused ? std::min(refusals_++, kDoublingsMax) : 0;
  if (!is_refused) refusals_ = 0;
  inquiry_.reset();
  next_poll_ns_ = clock_.NowNanos() + (options_.retry_ns << doublings);
}

void ReplicaHold::Connect() {
  inquiry_.emplace(
      fabric_,
      Inquiry::Options{
          options_.address, options_.node, options_.hello,
          Deadline::AtNanos(clock_.NowNanos() + options_.connect_ns),
          options_.credentials},
      Question(/*start_scrub=*/false));
}

Hold ReplicaHold::Question(bool start_scrub) const {
  return {options_.promise,
          options_.scrub ? options_.scrub(start_scrub) : Scrubbed()};
}

// RH1. A node that replies anything else is tried again later.
void ReplicaHold::TakeReply() {
  if (const auto* scrub = std::get_if<Scrub>(&*inquiry_->reply())) {
    return inquiry_->Ask(Question(scrub->start));
  }
  if (const auto* fetch = std::get_if<Fetch>(&*inquiry_->reply())) {
    return Show(Fetch(*fetch));
  }
  const auto* wanted = std::get_if<Wanted>(&*inquiry_->reply());
  if (wanted == nullptr) return TryLater(/*is_refused=*/true);
  if (wanted->promise.epoch > options_.promise.epoch) {
    wanted_ = wanted->promise;
    return;
  }
  inquiry_->Ask(Question(/*start_scrub=*/false));
}

// RH4. The request waits here until it is time.
void ReplicaHold::Show(const Fetch& fetch) {
  if (clock_.NowNanos() < next_piece_ns_) {
    next_poll_ns_ = next_piece_ns_;
    return;
  }
  Fetched shown{fetch.from, {}};
  if (options_.show) shown = options_.show(fetch);
  // Counted from the end of the piece, which may have waited for a cleanup.
  next_piece_ns_ = clock_.NowNanos() + options_.between_pieces_ns;
  inquiry_->Ask(shown);
}

}  // namespace alpheus
