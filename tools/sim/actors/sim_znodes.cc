// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/sim_znodes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

using quorum::SessionState;
using quorum::ZnodeEvent;
using quorum::ZnodeOutcome;

using Event = MembershipMessage::Kind;

SimZnodes::SimZnodes(MembershipService& service, const Clock& clock,
                     int machine, const quorum::PrimaryId& self,
                     std::function<void()> wake)
    : service_(service),
      clock_(clock),
      machine_(machine),
      self_(self),
      mailbox_(std::make_shared<MembershipMailbox>()),
      heard_at_(clock.NowNanos()) {
  mailbox_->wake = std::move(wake);
}

absl::Status SimZnodes::status() const {
  return absl::UnavailableError(
      absl::StrCat("the service ended session ", session_));
}

void SimZnodes::Connect() {
  MembershipRequest request;
  request.number = connect_number_ = ++number_;
  request.kind = MembershipRequest::Kind::kConnect;
  request.session = session_;
  request.process = self_;
  connect_sent_at_ = clock_.NowNanos();
  service_.Send(machine_, mailbox_, std::move(request));
}

void SimZnodes::Send(const quorum::ZnodeRequest& call) {
  ALPHEUS_CHECK(state_ == SessionState::kConnected, "ZN1 (znodes.h)");
  MembershipRequest request;
  request.number = ++number_;
  request.session = session_;
  request.process = self_;
  request.call = call;
  in_flight_[request.number] = {call.number, clock_.NowNanos()};
  service_.Send(machine_, mailbox_, std::move(request));
}

void SimZnodes::Poll(std::vector<ZnodeEvent>& events) {
  while (!mailbox_->messages.empty()) {
    const MembershipMessage message = std::move(mailbox_->messages.front());
    mailbox_->messages.pop_front();
    OnMessage(message, events);
  }
  if (state_ == SessionState::kExpired) return;
  const int64_t now = clock_.NowNanos();
  if (!in_flight_.empty() &&
      now - in_flight_.begin()->second.sent_at >= timeout_ns() * 2 / 3) {
    Disconnect(SessionState::kSuspended, events);
  }
  if (state_ == SessionState::kConnected) return;
  if (connect_number_ == 0 || now - connect_sent_at_ >= timeout_ns() / 3) {
    Connect();
  }
}

void SimZnodes::OnMessage(const MembershipMessage& message,
                          std::vector<ZnodeEvent>& events) {
  if (message.kind == Event::kChanged) {
    // It may be of an earlier connection: the server tells again.
    if (state_ != SessionState::kExpired) events.push_back(message.event);
    return;
  }
  if (connect_number_ != 0 && message.number == connect_number_) {
    connect_number_ = 0;
    heard_at_ = clock_.NowNanos();
    if (message.kind == Event::kExpired) {
      return Disconnect(SessionState::kExpired, events);
    }
    session_ = message.session;
    state_ = SessionState::kConnected;
    ++connections_;
    return;
  }
  const auto found = in_flight_.find(message.number);
  // The waiting request was given up.
  if (found == in_flight_.end()) return;
  heard_at_ = clock_.NowNanos();
  if (message.kind == Event::kExpired) {
    return Disconnect(SessionState::kExpired, events);
  }
  in_flight_.erase(found);
  events.push_back(message.event);
}

void SimZnodes::Disconnect(SessionState state,
                           std::vector<ZnodeEvent>& events) {
  state_ = state;
  for (const auto& [number, request] : std::exchange(in_flight_, {})) {
    ZnodeEvent& event = events.emplace_back();
    event.number = request.number;
    event.outcome = ZnodeOutcome::kUnknown;
  }
}

Deadline SimZnodes::NextPoll() const {
  if (state_ == SessionState::kExpired) return Deadline();
  if (state_ != SessionState::kConnected) {
    return Deadline::AtNanos(connect_number_ == 0
                                 ? clock_.NowNanos()
                                 : connect_sent_at_ + timeout_ns() / 3);
  }
  if (in_flight_.empty()) return Deadline();
  return Deadline::AtNanos(in_flight_.begin()->second.sent_at +
                           timeout_ns() * 2 / 3);
}

std::unique_ptr<quorum::ZnodeMembership> MakeSimMembership(
    MembershipService& service, const Clock& clock, RandomSource& random,
    int machine, const quorum::PrimaryId& self,
    const std::function<void()>& wake, std::optional<int64_t> patience_ns) {
  quorum::ZnodeMembershipOptions options;
  options.self = self;
  options.cluster_id = kClusterId;
  options.log_name = "log";
  const int64_t session_ns = service.options().session_ns;
  options.register_patience_ns = patience_ns.value_or(session_ns / 2);
  options.spread_ns = session_ns / 100;
  options.renew_ns_min = session_ns / 40;
  options.renew_ns_max = session_ns;
  auto make = [&service, &clock, machine, self,
               wake]() -> absl::StatusOr<std::unique_ptr<quorum::Znodes>> {
    return std::make_unique<SimZnodes>(service, clock, machine, self, wake);
  };
  return *quorum::ZnodeMembership::Start(std::move(make), clock, random,
                                         options);
}

class SharedBallots::Request final : public quorum::BallotRequest {
 public:
  Request(SharedBallots& ballots,
          std::unique_ptr<quorum::BallotRequest> request)
      : ballots_(ballots), request_(std::move(request)) {}

  Polled Poll() override { return request_->Poll(); }
  Deadline NextPoll() const override { return request_->NextPoll(); }
  absl::StatusOr<Epoch> ballot() const override {
    const absl::StatusOr<Epoch> own = request_->ballot();
    if (own.ok() && request_->is_of_register()) {
      const auto other = ballots_.service_.BallotOfAnother(ballots_.self_);
      if (other) return *other;
    }
    return own;
  }
  bool is_of_register() const override { return request_->is_of_register(); }

 private:
  SharedBallots& ballots_;
  const std::unique_ptr<quorum::BallotRequest> request_;
};

std::unique_ptr<quorum::BallotRequest> SharedBallots::Ask(
    const quorum::BallotQuestion& question) {
  return std::make_unique<Request>(*this, source_.Ask(question));
}

}  // namespace alpheus::sim
