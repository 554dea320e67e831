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

std::optional<Promise> ReplicaHold::Poll() {
  const int64_t now = clock_.NowNanos();
  if (now < next_poll_ns_) return std::nullopt;
  if (!inquiry_) Connect();
  next_poll_ns_ = kNever;
  if (!inquiry_->status().ok()) {
    return TryLater(!absl::IsUnavailable(inquiry_->status()));
  }
  return inquiry_->may_ask() ? TakeReply() : std::nullopt;
}

// Waits longer after each refusal: a region that is not one of the node's own
// is wanted by nobody, unless it is brought there.
std::optional<Promise> ReplicaHold::TryLater(bool is_refused) {
  constexpr int kDoublingsMax = 5;
  const int doublings = is_refused ? std::min(refusals_++, kDoublingsMax) : 0;
  if (!is_refused) refusals_ = 0;
  inquiry_.reset();
  next_poll_ns_ = clock_.NowNanos() + (options_.retry_ns << doublings);
  return std::nullopt;
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
std::optional<Promise> ReplicaHold::TakeReply() {
  if (const auto* scrub = std::get_if<Scrub>(&*inquiry_->reply())) {
    inquiry_->Ask(Question(scrub->start));
    return std::nullopt;
  }
  if (const auto* fetch = std::get_if<Fetch>(&*inquiry_->reply())) {
    Show(Fetch(*fetch));
    return std::nullopt;
  }
  const auto* wanted = std::get_if<Wanted>(&*inquiry_->reply());
  if (wanted == nullptr) return TryLater(/*is_refused=*/true);
  if (wanted->promise.epoch > options_.promise.epoch) return wanted->promise;
  inquiry_->Ask(Question(/*start_scrub=*/false));
  return std::nullopt;
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
