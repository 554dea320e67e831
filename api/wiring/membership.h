// SPDX-License-Identifier: Apache-2.0
// membership: opens the membership that a cluster's file names.
//
// Thread safety: one thread for each membership.
// References: quorum/membership/membership.h.
#ifndef ALPHEUS_API_WIRING_MEMBERSHIP_H_
#define ALPHEUS_API_WIRING_MEMBERSHIP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/members/configuration.h"
#include "quorum/membership/membership.h"

namespace alpheus {

struct MembershipOptions {
  std::string log_name;
  quorum::PrimaryId self;
  // As ZnodeMembershipOptions::look_ns: 0 if the owner waits on descriptor().
  int64_t look_ns = 0;
  // Reads who is there even if the process has no wish, and makes nothing then.
  bool observes = false;
  // How long a ballot waits for the service, in nanoseconds.
  int64_t register_patience_ns = 100'000'000;
};

// Opens the membership of a process for one log. With ZooKeeper it connects
// later, in Poll; a service without a server is as none, and the membership's
// problem says so. `random` must outlive it. Errors: InvalidArgument (as
// BallotSequence::Make); Unimplemented (the file names ZooKeeper, and this
// program has no client); Internal.
absl::StatusOr<std::unique_ptr<quorum::Membership>> OpenMembership(
    const quorum::ClusterConfiguration& cluster,
    const MembershipOptions& options, RandomSource& random);

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_MEMBERSHIP_H_
