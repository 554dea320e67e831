// SPDX-License-Identifier: Apache-2.0
// membership_entries: a candidate's entries with the membership service.
//
// Idea: the service tells clients and operators what the nodes tell candidates:
// who stands, how fresh each one is, who is primary, and who the members are.
// This class keeps the entries up to date with the election. They decide
// nothing. In return the service says that a primary has gone, once its session
// has expired. That is slow, but no wrong suspicion makes it slower.
//
// A process that no longer stands ends its membership, and all entries with it.
//
// Invariants:
//   ENT1. The process is named as primary only while it has the log open, from
//         the opening of its epoch on.
//   ENT2. A drained process is no candidate.
//   ENT3. An expired session is renewed, whatever the election does.
//   ENT4. The list that is published with an epoch is that of the log in this
//         epoch.
//   ENT5. The replica's freshness is told once an epoch, and again when its
//         node no longer hears the primary. It grows with each word of the
//         node, and each change is read by all: 100 logs that are written would
//         cost the service some hundred writes a second.
//   ENT6. A primary has left if the service named it, and a list that was read
//         since names nobody. A new session says nothing before its first list.
//         A primary leaves once: its znode may be deleted by hand again and
//         again, and wrong suspicions of it are damped all the same (ELE3).
// Thread safety: one thread. Nothing blocks.
// References: quorum/membership/membership.h; docs/design/election.md.
#ifndef ALPHEUS_RECOVERY_ELECTION_MEMBERSHIP_ENTRIES_H_
#define ALPHEUS_RECOVERY_ELECTION_MEMBERSHIP_ENTRIES_H_

#include <optional>
#include <string>

#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"
#include "recovery/election/election.h"

namespace alpheus::recovery {

class MembershipEntries {
 public:
  struct Options {
    quorum::PrimaryId self;  // the same as the membership's
    uint32_t priority = 0;
    std::string address;  // where clients find this process
  };

  // `membership` must outlive the object.
  MembershipEntries(quorum::Membership& membership, Options options);

  // Advances the membership, with the entries as the election is now. Returns
  // the epoch of another process's primary that the service no longer names:
  // its session has expired, or it has taken its entry back.
  std::optional<Epoch> Poll(const Election& election);
  Deadline NextPoll() const { return membership_.NextPoll(); }

  // Say that this process has opened the epoch, with these members, and that
  // its log is closed or has failed.
  void Opened(Epoch epoch, const quorum::MembersCopy& members);
  void Ended();

 private:
  void FollowStanding(const Election& election);
  void Describe(const Election& election);
  std::optional<Epoch> PrimaryThatLeft();

  quorum::Membership& membership_;
  const Options options_;
  bool stands_ = false;
  quorum::Merits merits_;
  // The primary that the last list named.
  std::optional<quorum::LivePrimary> known_;
  Epoch left_;  // of the primary that left last
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_ELECTION_MEMBERSHIP_ENTRIES_H_
