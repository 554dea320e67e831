// SPDX-License-Identifier: Apache-2.0
// sim_znodes: a process's client of the simulated membership service, in
// virtual time. In production ZooKeeper's C client is in its place.
//
// Idea: it keeps a connection, and tells its owner when that is lost. A
// connection is lost if a request is not answered for two thirds of the
// session's timeout. All requests in flight then have an unknown outcome. The
// membership above it is that of production (znode_membership.h).
//
// Thread safety: one thread.
// References: membership_service.h; quorum/membership/zookeeper/znodes.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SIM_ZNODES_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SIM_ZNODES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "quorum/membership/membership.h"
#include "quorum/membership/zookeeper/znode_membership.h"
#include "quorum/membership/zookeeper/znodes.h"
#include "tools/sim/actors/membership_service.h"

namespace alpheus::sim {

class SimZnodes final : public quorum::Znodes {
 public:
  // `clock` is the process's. `wake` is called when Poll has work, even if the
  // client is gone.
  SimZnodes(MembershipService& service, const Clock& clock, int machine,
            const quorum::PrimaryId& self, std::function<void()> wake);

  void Poll(std::vector<quorum::ZnodeEvent>& events) override;
  Deadline NextPoll() const override;
  int descriptor() const override { return -1; }
  quorum::SessionState state() const override { return state_; }
  absl::Status status() const override;
  uint64_t session_id() const override { return session_; }
  uint64_t connections() const override { return connections_; }
  int64_t timeout_ns() const override { return service_.options().session_ns; }
  int64_t asked_timeout_ns() const override { return timeout_ns(); }
  int64_t heard_at_ns() const override { return heard_at_; }
  void Send(const quorum::ZnodeRequest& call) override;
  void ForgetEphemerals() override {}

 private:
  struct InFlight {
    uint64_t number = 0;  // of the owner's request
    int64_t sent_at = 0;
  };

  void OnMessage(const MembershipMessage& message,
                 std::vector<quorum::ZnodeEvent>& events);
  void Connect();
  void Disconnect(quorum::SessionState state,
                  std::vector<quorum::ZnodeEvent>& events);

  MembershipService& service_;
  const Clock& clock_;
  const int machine_;
  const quorum::PrimaryId self_;
  const std::shared_ptr<MembershipMailbox> mailbox_;
  quorum::SessionState state_ = quorum::SessionState::kConnecting;
  uint64_t session_ = 0;
  uint64_t connections_ = 0;
  int64_t heard_at_ = 0;
  uint64_t number_ = 0;
  uint64_t connect_number_ = 0;  // of the request to connect, in flight
  int64_t connect_sent_at_ = 0;
  std::map<uint64_t, InFlight> in_flight_;
};

// Returns a process's membership of the simulated log, by that service. All
// must outlive it. `patience_ns`: how long a ballot waits for the service; not
// set: half of a session's timeout.
std::unique_ptr<quorum::ZnodeMembership> MakeSimMembership(
    MembershipService& service, const Clock& clock, RandomSource& random,
    int machine, const quorum::PrimaryId& self,
    const std::function<void()>& wake,
    std::optional<int64_t> patience_ns = std::nullopt);

// A canary: gives a process ballots that another one wrote.
class SharedBallots final : public quorum::BallotSource {
 public:
  // All must outlive it.
  SharedBallots(quorum::BallotSource& source, const MembershipService& service,
                const quorum::PrimaryId& self)
      : source_(source), service_(service), self_(self) {}

  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion& question) override;

 private:
  class Request;

  quorum::BallotSource& source_;
  const MembershipService& service_;
  const quorum::PrimaryId self_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SIM_ZNODES_H_
