// SPDX-License-Identifier: Apache-2.0
// noted_membership: a membership that notes what its process wishes.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_QUORUM_MEMBERSHIP_NOTED_MEMBERSHIP_H_
#define ALPHEUS_TESTS_QUORUM_MEMBERSHIP_NOTED_MEMBERSHIP_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/deadline.h"
#include "quorum/membership/membership.h"

namespace alpheus::testing {

// Notes its calls; a test sets what the service says.
class NotedMembership final : public quorum::Membership {
 public:
  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion& /*question*/) override {
    return nullptr;
  }
  void Poll() override {
    ++polls;
    if (expires) state = quorum::SessionState::kExpired;
  }
  Deadline NextPoll() const override { return next_poll; }
  quorum::Session session() const override { return {1, state}; }
  absl::Status problem() const override { return trouble; }
  std::string warning() const override { return warns; }
  bool is_settled() const override { return settled; }
  void Renew() override {
    state = quorum::SessionState::kConnecting;
    live.reset();
    calls.emplace_back("renew");
  }
  void Register(const quorum::Registration& registration) override {
    calls.push_back(absl::StrCat("register ", registration.address, " ",
                                 registration.log_epoch.value));
  }
  void Unregister() override { calls.emplace_back("unregister"); }
  void Stand() override { calls.emplace_back("stand"); }
  void Withdraw() override { calls.emplace_back("withdraw"); }
  void Describe(const quorum::Merits& merits) override {
    calls.push_back(absl::StrCat("describe ", merits.log_epoch.value, " ",
                                 merits.persisted.value, " ", merits.priority));
  }
  void Announce(const quorum::LivePrimary& primary) override {
    calls.push_back(
        absl::StrCat("announce ", primary.epoch.value, " ", primary.address));
  }
  void Retract() override { calls.emplace_back("retract"); }
  void Publish(const quorum::MembersCopy& members) override {
    calls.push_back(absl::StrCat("publish ", members.configuration_id));
  }
  const std::vector<quorum::Registration>& registrations() const override {
    return registrations_;
  }
  const std::vector<quorum::Candidate>& candidates() const override {
    return candidates_;
  }
  std::optional<quorum::LivePrimary> live_primary() const override {
    return live;
  }
  std::vector<quorum::MembershipEvent> TakeEvents() override {
    return std::exchange(events, {});
  }

  std::vector<std::string> Calls() { return std::exchange(calls, {}); }

  quorum::SessionState state = quorum::SessionState::kConnected;
  absl::Status trouble;
  std::string warns;
  bool settled = true;
  std::shared_ptr<bool> life = std::make_shared<bool>(true);  // ends with it
  bool expires = false;  // in the next Poll
  Deadline next_poll;
  int polls = 0;
  std::optional<quorum::LivePrimary> live;
  std::vector<quorum::MembershipEvent> events;
  std::vector<std::string> calls;

 private:
  std::vector<quorum::Registration> registrations_;
  std::vector<quorum::Candidate> candidates_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_QUORUM_MEMBERSHIP_NOTED_MEMBERSHIP_H_
