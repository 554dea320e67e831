// SPDX-License-Identifier: Apache-2.0
// znode_contents: what each znode says, as text that an operator can read.
//
// Idea: a first line with kind and version, then one `key value` a line:
//
//   alpheus ballot 1
//   epoch 0000001100024f3a
//   counter 17
//   node 2
//
// A reader skips keys that it does not know, so that a later version may add
// some. It is an error if a key that it needs is missing or there twice, or if
// the version is another one. Anybody with the right may have written the text:
// it is checked and never trusted (P-H24).
//
// Invariants:
//   ZC1. Decode reads back the value that Encode wrote.
//   ZC2. Decode accepts a ballot only if its counter and node are those of its
//        epoch: a znode that was edited by hand is unreadable, not wrong.
//   ZC3. Each text is the whole content of one znode. So a write that took
//        effect is read whole.
// Crash states: the service keeps a znode's old content or its new one.
// Thread safety: pure functions.
// References: docs/design/zookeeper.md.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_CONTENTS_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_CONTENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/members/configuration.h"
#include "quorum/membership/membership.h"

namespace alpheus::quorum {

// Largest content that is read. A written content has less than a kilobyte for
// each member.
inline constexpr size_t kZnodeBytesMax = size_t{64} * 1024;

// The version of the layout; a process that finds another one keeps away.
inline constexpr uint64_t kZnodeLayoutVersion = 1;

std::string EncodeFormat();
// Errors: InvalidArgument (not such a text); Unimplemented (another version).
absl::Status CheckFormat(std::string_view text);

// The last ballot that a register gave. Requires: PackBallot made it.
std::string EncodeBallot(Epoch ballot);
absl::StatusOr<Epoch> DecodeBallot(std::string_view text);

// A node of the log with that name.
struct RegisteredNode {
  std::string log_name;
  Registration registration;

  bool operator==(const RegisteredNode&) const = default;
};
std::string EncodeNode(const RegisteredNode& node);
absl::StatusOr<RegisteredNode> DecodeNode(std::string_view text);
// "<node>-<incarnation>"
std::string NodeName(const Registration& registration);

std::string EncodeMerits(const Merits& merits);
absl::StatusOr<Merits> DecodeMerits(std::string_view text);

// The name of a candidate: "<node>-<incarnation>-<token>-", to which the
// service appends the number. `token` tells the objects of one process apart.
struct CandidateName {
  PrimaryId primary;
  uint64_t token = 0;
  uint64_t sequence = 0;

  bool operator==(const CandidateName&) const = default;
};
// Returns the name without the number.
std::string CandidatePrefix(const PrimaryId& primary, uint64_t token);
// Returns nothing for a name that no candidate has.
std::optional<CandidateName> ParseCandidateName(std::string_view name);

std::string EncodePrimary(const LivePrimary& primary);
absl::StatusOr<LivePrimary> DecodePrimary(std::string_view text);
// "primary-<epoch>", in 16 digits: the last name has the highest epoch.
std::string PrimaryName(Epoch epoch);
// Returns nothing for a name that no primary's znode has.
std::optional<Epoch> ParsePrimaryName(std::string_view name);

// A copy of the list of members, for clients.
std::string EncodeMembers(const MembersCopy& members);
absl::StatusOr<MembersCopy> DecodeMembers(std::string_view text);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_CONTENTS_H_
