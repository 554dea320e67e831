// SPDX-License-Identifier: Apache-2.0
// sim_membership: a process's client of the simulated membership service.
//
// Idea: it does the work of a coordination service's client behind
// quorum/membership/membership.h, with one request in flight at a time. A wish
// that is not known to be fulfilled is sent again. After a lost connection the
// lists are read again, and show the result of a request to stand.
//
//   kConnecting --session--> kConnected --no answer in time--> kSuspended
//        ^                       ^  |                            |     |
//        |                       |  \--"no such session"--> kExpired <-/
//        \------- Renew ---------|------------------------------/      |
//                                \-------- the session continues ------/
//
// Thread safety: one thread.
// References: membership_service.h; quorum/membership/membership.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SIM_MEMBERSHIP_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SIM_MEMBERSHIP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"
#include "quorum/membership/membership_events.h"
#include "quorum/membership/register_ballot.h"
#include "tools/sim/actors/membership_service.h"

namespace alpheus::sim {

class SimMembership final : public quorum::Membership {
 public:
  // `clock` is the process's. `wake` is called when Poll has work, even if the
  // client is gone. `shares_ballots`: a canary; it returns another process's
  // ballot.
  SimMembership(MembershipService& service, const Clock& clock, int machine,
                const quorum::PrimaryId& self, std::function<void()> wake,
                bool shares_ballots = false);
  SimMembership(const SimMembership&) = delete;
  SimMembership& operator=(const SimMembership&) = delete;

  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion& question) override;

  void Poll() override;
  Deadline NextPoll() const override;
  quorum::Session session() const override { return session_; }
  void Renew() override;
  void Register(const quorum::Registration& registration) override;
  void Stand() override;
  void Withdraw() override;
  const std::vector<quorum::Registration>& registrations() const override {
    return members_;
  }
  const std::vector<quorum::Candidate>& candidates() const override {
    return candidates_;
  }
  std::vector<quorum::MembershipEvent> TakeEvents() override {
    return events_.Take();
  }

 private:
  using Kind = MembershipRequest::Kind;
  using Step = quorum::RegisterBallot::Step;
  class Request;

  void OnMessage(const MembershipMessage& message);
  void OnAnswer(Kind kind, const MembershipMessage& answer);
  void OnBallotAnswer(const MembershipMessage& answer);
  void CheckTime();
  void Suspend();
  void Expire();
  absl::Status HasExpired() const;
  void SendNext();
  std::optional<Kind> NextKind();
  bool HasStood() const;
  std::shared_ptr<quorum::RegisterBallot> FirstBallot();
  void Change(quorum::SessionState state);

  MembershipService& service_;
  const Clock& clock_;
  const int machine_;
  const quorum::PrimaryId self_;
  const bool shares_ballots_;
  const std::shared_ptr<MembershipMailbox> mailbox_;
  quorum::BallotSequence sequence_;
  quorum::Session session_;
  quorum::MembershipEvents events_;

  // Wishes, and their known state.
  std::optional<quorum::Registration> registration_;
  std::optional<quorum::Registration> registered_;
  bool wants_to_stand_ = false;
  std::vector<quorum::Registration> members_;
  std::vector<quorum::Candidate> candidates_;
  bool members_are_old_ = true;
  bool candidates_are_old_ = true;
  std::deque<std::weak_ptr<quorum::RegisterBallot>> ballots_;

  // Request in flight.
  uint64_t number_ = 0;
  std::optional<Kind> in_progress_;
  std::shared_ptr<quorum::RegisterBallot> ballot_;  // to be answered
  quorum::Registration sent_registration_;
  int64_t sent_at_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SIM_MEMBERSHIP_H_
