// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/sim_membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::sim {

using quorum::SessionState;

using Event = MembershipMessage::Kind;

// It shares the state of one ballot with the client.
class SimMembership::Request final : public quorum::BallotRequest {
 public:
  Request(SimMembership& client, std::shared_ptr<quorum::RegisterBallot> ballot)
      : client_(client), ballot_(std::move(ballot)) {}

  Polled Poll() override {
    client_.Poll();
    return ballot_->step() == Step::kDone ? Polled::kDone : Polled::kIdle;
  }
  Deadline NextPoll() const override { return client_.NextPoll(); }
  absl::StatusOr<Epoch> ballot() const override {
    if (client_.shares_ballots_ && ballot_->result().ok()) {
      const auto other = client_.service_.BallotOfAnother(client_.self_);
      if (other) return *other;
    }
    return ballot_->result();
  }

 private:
  SimMembership& client_;
  const std::shared_ptr<quorum::RegisterBallot> ballot_;
};

SimMembership::SimMembership(MembershipService& service, const Clock& clock,
                             int machine, const quorum::PrimaryId& self,
                             std::function<void()> wake, bool shares_ballots)
    : service_(service),
      clock_(clock),
      machine_(machine),
      self_(self),
      shares_ballots_(shares_ballots),
      mailbox_(std::make_shared<MembershipMailbox>()),
      sequence_(*quorum::BallotSequence::Make(self)) {
  mailbox_->wake = std::move(wake);
}

std::unique_ptr<quorum::BallotRequest> SimMembership::Ask(
    const quorum::BallotQuestion& question) {
  auto ballot = std::make_shared<quorum::RegisterBallot>(sequence_, question);
  if (session_.state == SessionState::kExpired) {
    ballot->Fail(HasExpired());
  } else {
    ballots_.push_back(ballot);
  }
  return std::make_unique<Request>(*this, std::move(ballot));
}

void SimMembership::Poll() {
  while (!mailbox_->messages.empty()) {
    const MembershipMessage message = std::move(mailbox_->messages.front());
    mailbox_->messages.pop_front();
    OnMessage(message);
  }
  CheckTime();
  SendNext();
}

void SimMembership::OnMessage(const MembershipMessage& message) {
  if (message.kind == Event::kRegistrationsChanged) {
    members_are_old_ = true;
    return;
  }
  if (message.kind == Event::kCandidatesChanged) {
    candidates_are_old_ = true;
    return;
  }
  // The waiting request was dropped.
  if (!in_progress_ || message.number != number_) return;
  const Kind kind = *std::exchange(in_progress_, std::nullopt);
  if (message.kind == Event::kExpired) return Expire();
  OnAnswer(kind, message);
}

void SimMembership::OnAnswer(Kind kind, const MembershipMessage& answer) {
  switch (kind) {
    case Kind::kConnect:
      session_.id = answer.session;
      Change(SessionState::kConnected);
      break;
    case Kind::kPing:
      break;
    case Kind::kRegister:
      registered_ = sent_registration_;
      break;
    case Kind::kStand:
    case Kind::kWithdraw:
      candidates_are_old_ = true;
      break;
    case Kind::kReadMembers:
      members_ = answer.members;
      events_.Note(quorum::MembershipEvent::kRegistrationsChanged);
      break;
    case Kind::kReadCandidates:
      candidates_ = answer.candidates;
      events_.Note(quorum::MembershipEvent::kCandidatesChanged);
      break;
    case Kind::kReadRegister:
    case Kind::kWriteRegister:
      OnBallotAnswer(answer);
      break;
  }
}

void SimMembership::OnBallotAnswer(const MembershipMessage& answer) {
  const auto ballot = std::exchange(ballot_, nullptr);
  if (ballot->step() == Step::kRead) {
    ballot->OnRead(answer.ballots);
  } else if (answer.kind == Event::kOvertaken) {
    ballot->OnOvertaken();
  } else {
    ballot->OnWritten();
  }
}

// No answer is a lost connection. It is looked for again as often.
void SimMembership::CheckTime() {
  if (!in_progress_) return;
  if (clock_.NowNanos() - sent_at_ < service_.options().session_ns / 3) return;
  Suspend();
}

void SimMembership::Suspend() {
  in_progress_.reset();
  if (ballot_ != nullptr) std::exchange(ballot_, nullptr)->OnUnknown();
  members_are_old_ = true;
  candidates_are_old_ = true;
  if (session_.state == SessionState::kConnected) {
    Change(SessionState::kSuspended);
  }
}

absl::Status SimMembership::HasExpired() const {
  return absl::UnavailableError(
      absl::StrCat("session ", session_.id, " of node ", self_.node.value,
                   " has expired before a ballot came. Open the log again in "
                   "a new session"));
}

void SimMembership::Expire() {
  ballot_.reset();
  while (const auto ballot = FirstBallot()) {
    ballot->Fail(HasExpired());
    ballots_.pop_front();
  }
  registered_.reset();
  Change(SessionState::kExpired);
}

void SimMembership::Renew() {
  ALPHEUS_CHECK(session_.state == SessionState::kExpired,
                "a session that lives is not renewed");
  session_ = {};
  members_are_old_ = true;
  candidates_are_old_ = true;
  candidates_.clear();
  SendNext();
}

// The first that somebody still waits for.
std::shared_ptr<quorum::RegisterBallot> SimMembership::FirstBallot() {
  while (!ballots_.empty()) {
    auto ballot = ballots_.front().lock();
    if (ballot != nullptr && ballot->step() != Step::kDone) return ballot;
    ballots_.pop_front();
  }
  return nullptr;
}

bool SimMembership::HasStood() const {
  return std::ranges::any_of(candidates_,
                             [&](const quorum::Candidate& candidate) {
                               return candidate.primary == self_;
                             });
}

std::optional<SimMembership::Kind> SimMembership::NextKind() {
  if (session_.state == SessionState::kExpired) return std::nullopt;
  if (session_.state != SessionState::kConnected) return Kind::kConnect;
  if (ballot_ = FirstBallot(); ballot_ != nullptr) {
    return ballot_->step() == Step::kRead ? Kind::kReadRegister
                                          : Kind::kWriteRegister;
  }
  // A client that neither is registered nor stands wants a ballot.
  if (registration_ || wants_to_stand_) {
    if (registered_ != registration_) return Kind::kRegister;
    if (std::exchange(candidates_are_old_, false)) {
      return Kind::kReadCandidates;
    }
    if (wants_to_stand_ != HasStood()) {
      return wants_to_stand_ ? Kind::kStand : Kind::kWithdraw;
    }
    if (std::exchange(members_are_old_, false)) return Kind::kReadMembers;
  }
  const int64_t ping_ns = service_.options().session_ns / 4;
  if (clock_.NowNanos() - sent_at_ >= ping_ns) return Kind::kPing;
  return std::nullopt;
}

void SimMembership::SendNext() {
  if (in_progress_) return;
  in_progress_ = NextKind();
  if (!in_progress_) return;
  MembershipRequest request;
  request.number = ++number_;
  request.kind = *in_progress_;
  request.session = session_.id;
  request.process = self_;
  if (*in_progress_ == Kind::kRegister) {
    sent_registration_ = request.registration = *registration_;
  }
  if (*in_progress_ == Kind::kWriteRegister) {
    request.ballot = ballot_->value();
    if (ballot_->step() == Step::kSet) request.version = ballot_->version();
  }
  sent_at_ = clock_.NowNanos();
  service_.Send(machine_, mailbox_, std::move(request));
}

Deadline SimMembership::NextPoll() const {
  if (session_.state == SessionState::kExpired) return Deadline();
  const int64_t session_ns = service_.options().session_ns;
  return Deadline::AtNanos(sent_at_ +
                           (in_progress_ ? session_ns / 3 : session_ns / 4));
}

void SimMembership::Register(const quorum::Registration& registration) {
  registration_ = registration;
  SendNext();
}

void SimMembership::Stand() {
  wants_to_stand_ = true;
  SendNext();
}

void SimMembership::Withdraw() {
  wants_to_stand_ = false;
  SendNext();
}

void SimMembership::Change(SessionState state) {
  if (session_.state == state) return;
  session_.state = state;
  events_.Note(quorum::MembershipEvent::kSessionChanged);
}

}  // namespace alpheus::sim
