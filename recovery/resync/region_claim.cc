// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/region_claim.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"

namespace alpheus::recovery {

RegionClaim::RegionClaim(fabric::Fabric& fabric, const Clock& clock,
                         RegionClaimOptions options)
    : fabric_(fabric), clock_(clock), options_(std::move(options)) {}

bool RegionClaim::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (!control_call_ || !control_call_->OnConnectionEvent(event)) return false;
  next_poll_ns_ = 0;
  return true;
}

bool RegionClaim::OnCompletion(const fabric::Completion& completion) {
  if (!control_call_ || !control_call_->OnCompletion(completion)) return false;
  next_poll_ns_ = 0;
  return true;
}

Polled RegionClaim::Poll() {
  if (wanted_) return Polled::kDone;
  if (clock_.NowNanos() < next_poll_ns_) return Polled::kIdle;
  if (!control_call_) Connect();
  next_poll_ns_ = Deadline().at_nanos();  // when something was taken
  if (!control_call_->status().ok()) {
    TryLater(!absl::IsUnavailable(control_call_->status()));
  } else if (control_call_->may_ask()) {
    OnReply();
  }
  return wanted_ ? Polled::kDone : Polled::kIdle;
}

// Waits longer after each refusal: a region that is not one of the node's own
// is wanted by nobody, unless it is brought there.
void RegionClaim::TryLater(bool is_refused) {
  constexpr int kDoublingsMax = 5;
  const int doublings = is_refused ? std::min(refusals_++, kDoublingsMax) : 0;
  if (!is_refused) refusals_ = 0;
  control_call_.reset();
  next_poll_ns_ = clock_.NowNanos() + (options_.retry_ns << doublings);
}

void RegionClaim::Connect() {
  control_call_.emplace(
      fabric_,
      ControlCall::Options{
          options_.address, options_.node, options_.hello,
          Deadline::AtNanos(clock_.NowNanos() + options_.connect_ns),
          options_.credentials},
      Question(/*start_scrub=*/false));
}

Claim RegionClaim::Question(bool start_scrub, const AskChange* change) const {
  Claim claim{options_.promise,
              options_.scrub ? options_.scrub(start_scrub) : Scrubbed()};
  if (options_.change) {
    claim.change_state = options_.change(change);
  } else if (change != nullptr) {
    claim.change_state.id = change->id;
  }
  return claim;
}

// RGC1. A node that replies anything else is tried again later.
void RegionClaim::OnReply() {
  if (const auto* scrub = std::get_if<Scrub>(&*control_call_->reply())) {
    return control_call_->Ask(Question(scrub->start));
  }
  if (const auto* change = std::get_if<AskChange>(&*control_call_->reply())) {
    // Asking anew drops the reply.
    const Claim claim = Question(/*start_scrub=*/false, change);
    return control_call_->Ask(claim);
  }
  if (const auto* fetch = std::get_if<Fetch>(&*control_call_->reply())) {
    return Show(Fetch(*fetch));
  }
  const auto* wanted = std::get_if<Wanted>(&*control_call_->reply());
  if (wanted == nullptr) return TryLater(/*is_refused=*/true);
  if (wanted->promise.epoch > options_.promise.epoch) {
    wanted_ = wanted->promise;
    return;
  }
  control_call_->Ask(Question(/*start_scrub=*/false));
}

// RGC4. The request waits here until it is time.
void RegionClaim::Show(const Fetch& fetch) {
  if (clock_.NowNanos() < next_piece_ns_) {
    next_poll_ns_ = next_piece_ns_;
    return;
  }
  Fetched shown{fetch.from, {}};
  if (options_.show) shown = options_.show(fetch);
  // Counted from the end of the piece, which may have waited for a cleanup.
  next_piece_ns_ = clock_.NowNanos() + options_.between_pieces_ns;
  control_call_->Ask(shown);
}

}  // namespace alpheus::recovery
