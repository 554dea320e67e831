// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/static_membership.h"

#include <utility>

#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::quorum {
namespace {

class Answered final : public BallotRequest {
 public:
  explicit Answered(absl::StatusOr<Epoch> ballot)
      : ballot_(std::move(ballot)) {}

  Polled Poll() override { return Polled::kDone; }
  Deadline NextPoll() const override { return Deadline(); }
  absl::StatusOr<Epoch> ballot() const override { return ballot_; }

 private:
  const absl::StatusOr<Epoch> ballot_;
};

}  // namespace

absl::StatusOr<StaticMembership> StaticMembership::Make(const PrimaryId& self,
                                                        absl::Status problem) {
  ALPHEUS_ASSIGN_OR_RETURN(const BallotSequence ballots,
                           BallotSequence::Make(self));
  return StaticMembership(self, ballots, std::move(problem));
}

std::unique_ptr<BallotRequest> StaticMembership::Ask(
    const BallotQuestion& question) {
  return std::make_unique<Answered>(
      ballots_.Next(question.promised, question.sizes));
}

Session StaticMembership::session() const {
  return {self_.incarnation, SessionState::kConnected};
}

void StaticMembership::Renew() {
  ALPHEUS_CHECK(false, "a session without a service does not expire");
}

void StaticMembership::Register(const Registration& registration) {
  members_ = {registration};
  events_.Note(MembershipEvent::kRegistrationsChanged);
}

void StaticMembership::Unregister() {
  if (members_.empty()) return;
  members_.clear();
  events_.Note(MembershipEvent::kRegistrationsChanged);
}

void StaticMembership::Stand() {
  if (!candidates_.empty()) return;
  candidates_ = {{0, self_}};
  events_.Note(MembershipEvent::kCandidatesChanged);
}

void StaticMembership::Withdraw() {
  if (candidates_.empty()) return;
  candidates_.clear();
  events_.Note(MembershipEvent::kCandidatesChanged);
}

}  // namespace alpheus::quorum
