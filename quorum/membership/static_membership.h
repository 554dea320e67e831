// SPDX-License-Identifier: Apache-2.0
// static_membership: a cluster without a service, whose members a file names.
//
// Idea: a process knows nothing of others, and asks nobody. Ballots are counted
// up from what the replicas promised (BallotSequence). Every candidate is first
// as far as it knows; the operator sees to it that there are few. It also takes
// the place of a service that can't be found at all.
//
// Thread safety: one thread.
// References: membership.h; protocol P-A4.1.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_STATIC_MEMBERSHIP_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_STATIC_MEMBERSHIP_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"
#include "quorum/membership/membership_events.h"

namespace alpheus::quorum {

class StaticMembership final : public Membership {
 public:
  // Takes the place of a service that is of no use, for the reason `problem`;
  // OK: the cluster has no service. Errors: as BallotSequence::Make.
  static absl::StatusOr<StaticMembership> Make(
      const PrimaryId& self, absl::Status problem = absl::OkStatus());

  // Answers at once.
  std::unique_ptr<BallotRequest> Ask(const BallotQuestion& question) override;

  void Poll() override {}
  Deadline NextPoll() const override { return Deadline(); }
  // Returns a session that is always connected.
  Session session() const override;
  absl::Status problem() const override { return problem_; }
  void Renew() override;

  void Register(const Registration& registration) override;
  void Unregister() override;
  void Stand() override;
  void Withdraw() override;
  // Both lists have this process, once it registered or stands, and no other.
  const std::vector<Registration>& registrations() const override {
    return members_;
  }
  const std::vector<Candidate>& candidates() const override {
    return candidates_;
  }
  std::vector<MembershipEvent> TakeEvents() override { return events_.Take(); }

 private:
  StaticMembership(const PrimaryId& self, const BallotSequence& ballots,
                   absl::Status problem)
      : self_(self), problem_(std::move(problem)), ballots_(ballots) {}

  PrimaryId self_;
  absl::Status problem_;
  BallotSequence ballots_;
  std::vector<Registration> members_;
  std::vector<Candidate> candidates_;
  MembershipEvents events_;
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_STATIC_MEMBERSHIP_H_
