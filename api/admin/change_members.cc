// SPDX-License-Identifier: Apache-2.0
#include "api/admin/change_members.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "alpheus/candidate.h"
#include "api/admin/ask_primary.h"
#include "api/admin/change_inquiry.h"
#include "api/admin/instruct_candidates.h"
#include "api/wiring/adapter.h"
#include "api/wiring/log_members.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/state_report.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

using quorum::ClusterConfiguration;
using quorum::ClusterMember;
using recovery::MembersChange;
using recovery::PeerAddress;

namespace {

// Returns a member that may be primary: this one, if it may.
NodeId SomePrimary(const ClusterConfiguration& cluster, NodeId rather) {
  const ClusterMember* const own = quorum::FindMember(cluster, rather);
  if (own != nullptr && own->may_be_primary) return rather;
  const auto some =
      std::find_if(cluster.members.begin(), cluster.members.end(),
                   [](const ClusterMember& m) { return m.may_be_primary; });
  return some->node;  // CF3 (configuration.h)
}

// Checks that this process may open the log as that node: a node's certificate
// is good for that node alone.
absl::Status CheckMayOpen(const ChangeMembersOptions& options,
                          const ClusterConfiguration& to, uint64_t opener) {
  const bool may =
      !to.encryption || options.as_node == 0 || options.as_node == opener;
  if (may) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "log ", options.log_name, ": no primary makes the change, and node ",
      options.as_node,
      " can't open the log for it: it may not be primary, and its certificate "
      "is good for no other node. The members were not changed. Ask a node "
      "that stays and may be primary, or use the command with an operator's "
      "certificate"));
}

std::vector<NodeId> NodesOf(const ClusterConfiguration& cluster) {
  std::vector<NodeId> nodes;
  for (const ClusterMember& member : cluster.members) {
    nodes.push_back(member.node);
  }
  return nodes;
}

// Returns the members of both lists, with the addresses of the later one.
std::vector<PeerAddress> PeersOf(const ClusterConfiguration& from,
                                 const ClusterConfiguration& to) {
  std::vector<PeerAddress> peers;
  for (const ClusterMember& member : to.members) {
    peers.push_back({member.node, member.address.ToString()});
  }
  for (const ClusterMember& member : from.members) {
    if (quorum::FindMember(to, member.node) != nullptr) continue;
    peers.push_back({member.node, member.address.ToString()});
  }
  return peers;
}

// Checks the numbers first, so that a mistyped one gets a precise error.
absl::Status CheckReplaced(const std::string& file,
                           const ClusterConfiguration& cluster,
                           const std::vector<uint64_t>& replaced) {
  for (const uint64_t node : replaced) {
    if (quorum::FindMember(cluster, NodeId(node)) != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": node ", node,
        " is not a member of the cluster, which has nodes ",
        absl::StrJoin(cluster.members, ", ",
                      [](std::string* text, const ClusterMember& member) {
                        absl::StrAppend(text, member.node.value);
                      }),
        ". Nothing was changed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<MembersChange> ChangeBetween(
    const ClusterConfiguration& from, const ClusterConfiguration& to,
    const std::vector<uint64_t>& replaced) {
  if (from.cluster_id != to.cluster_id) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the two lists of members belong to different clusters, ",
        from.cluster_id.ToString(), " and ", to.cluster_id.ToString()));
  }
  MembersChange change{from.id,     from.sizes, NodesOf(from), to.id, to.sizes,
                       NodesOf(to), {}};
  for (const uint64_t node : replaced) change.replaced.push_back(NodeId(node));
  std::sort(change.replaced.begin(), change.replaced.end());
  ALPHEUS_RETURN_IF_ERROR(recovery::CheckChange(change));
  return change;
}

absl::Status IsInTheWay(const std::string& what, const std::string& log_name) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, ". The members were not changed. Remove the file ", log_name,
      ".alpheus from that node's directory, then run this command again"));
}

// Checks that the replica to be replaced is lost: one that may still count, or
// is in the way, is not replaced.
absl::Status CheckIsLost(const PeerAddress& peer,
                         const ReadSuperlinesResult& replicas,
                         const Superline& newest, const std::string& log_name) {
  const auto failed = replicas.failed.find(peer.node);
  if (failed != replicas.failed.end() && absl::IsDataLoss(failed->second)) {
    return IsInTheWay(
        absl::StrCat(recovery::DescribePeer(peer),
                     " has a damaged replica of the log, which prevents a new "
                     "one: ",
                     failed->second.message()),
        log_name);
  }
  for (const Superline& superline : replicas.superlines) {
    if (superline.node != peer.node || recovery::IsBlank(superline)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        recovery::DescribePeer(peer), " has its replica of log ",
        newest.log_id.ToString(), ", of epoch ", superline.log_epoch.value,
        ": the replica is not lost, and its records may count. Nothing was "
        "changed. To replace it nevertheless, stop the node and move the file "
        "away first"));
  }
  return absl::OkStatus();
}

// Returns whether enough members of the previous list, or of the one found,
// reported their lists to exclude that another list is in force unseen (OPQ6 of
// opening_quorums.h).
bool KnowEnough(const MembersChange& change,
                const std::vector<Superline>& superlines,
                const Configuration& found) {
  const auto count = [&superlines](const auto& is_member) {
    return std::ranges::count_if(superlines, [&](const Superline& superline) {
      return !recovery::IsBlank(superline) && is_member(superline.node);
    });
  };
  const auto known = count([&](NodeId node) {
    return std::ranges::any_of(found.members, [&](const Member& member) {
      return member.node == node;
    });
  });
  if (std::cmp_greater_equal(known, recovery::SizesOf(found).read_quorum))
    return true;
  const auto before = count([&](NodeId node) {
    return std::ranges::find(change.from_nodes, node) !=
           change.from_nodes.end();
  });
  return std::cmp_greater_equal(before, quorum::OpeningQuorumSize(change.from));
}

// Returns the error for a log whose list is not the one to change.
absl::Status IsOtherList(const MembersChange& change, const absl::Status& why,
                         const Configuration& found) {
  const char* const remedy =
      found.id < change.from_id
          ? ". If the log is to get this list, run `alpheus reconfigure`"
          : "";
  return {
      why.code(),
      absl::StrCat(
          why.message(),
          ". Nothing was changed; a program that has the log open continues",
          remedy)};
}

// State reports of the members.
struct MembersSeen {
  ReadSuperlinesResult replicas;
  Superline newest;
};

// Checks, before anything is made or promised, that the change begins or ends
// with the list that the log has. Too few members may report, since a replica
// that a primary has as its own reports nothing. Then the opening, which makes
// that primary step down, finds out.
absl::StatusOr<MembersSeen> FetchMembers(
    fabric::Fabric& fabric, RandomSource& random,
    const LogMembersOptions& members, const MembersChange& change,
    const std::vector<PeerAddress>& peers) {
  MembersSeen seen;
  ALPHEUS_ASSIGN_OR_RETURN(seen.replicas,
                           ReadSuperlines(fabric, random, members, peers));
  ALPHEUS_ASSIGN_OR_RETURN(seen.newest, NewestOf(seen.replicas.superlines));
  const Configuration& found = seen.newest.configuration;
  const absl::Status fits = recovery::CheckFound(change, found);
  // An older list may come from a member that was out of sync.
  if (!fits.ok() && (found.id >= change.from_id ||
                     KnowEnough(change, seen.replicas.superlines, found))) {
    return IsOtherList(change, fits, found);
  }
  return seen;
}

// Makes blank replicas on the joining nodes; the primary is not disturbed.
absl::Status PrepareNewcomers(const ClusterConfiguration& from,
                              const ClusterConfiguration& to,
                              const MembersChange& change,
                              const LogOptions& options, NodeId as_node,
                              Deadline deadline) {
  EntropyRandom random;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<fabric::Fabric> fabric,
                           OpenAdapter(to, as_node, random));
  LogMembersOptions members;
  members.cluster_id = to.cluster_id;
  members.log_name = options.replication.log_name;
  members.log_id = quorum::LogIdOf(to.cluster_id, members.log_name);
  members.self = NodeId(options.replication.node);
  members.key = to.key;
  members.deadline = deadline;
  const std::vector<PeerAddress> all = PeersOf(from, to);
  ALPHEUS_ASSIGN_OR_RETURN(const MembersSeen seen,
                           FetchMembers(*fabric, random, members, change, all));
  std::vector<PeerAddress> newcomers;
  for (const PeerAddress& peer : all) {
    const bool is_replaced = std::binary_search(
        change.replaced.begin(), change.replaced.end(), peer.node);
    const bool joins = quorum::FindMember(from, peer.node) == nullptr;
    if (is_replaced) {
      ALPHEUS_RETURN_IF_ERROR(
          CheckIsLost(peer, seen.replicas, seen.newest, members.log_name));
    }
    if (is_replaced || joins) newcomers.push_back(peer);
  }
  const absl::Status made =
      MakeBlankReplicas(*fabric, random, members, seen.newest, newcomers);
  if (!absl::IsDataLoss(made)) return made;
  return IsInTheWay(
      absl::StrCat("a damaged replica of the log prevents a new one: ",
                   made.message()),
      members.log_name);
}

// Returns the first third of what is left until the deadline: an opening ends a
// primary that can't be asked, so its time is the rest.
int64_t ThirdOf(Deadline deadline) {
  return std::max<int64_t>((deadline.at_nanos() - Clock::Real().NowNanos()) / 3,
                           kNanosPerMs);
}

// Has the primary at a node that leaves hand the log over, so that its users
// see an end in good order and no outcome is unknown (CHM1). Errors: as
// Candidate::Drain; after DeadlineExceeded it was told.
absl::Status HandOver(const ChangeMembersOptions& options, NodeId leaving,
                      Deadline deadline) {
  ElectOptions drain;
  drain.cluster_file = options.previous_cluster_file.empty()
                           ? options.cluster_file
                           : options.previous_cluster_file;
  drain.log_name = options.log_name;
  drain.node = leaving.value;
  drain.as_node = options.as_node;
  constexpr int64_t kDrainMillisMax = 30'000;
  drain.timeout_ms = static_cast<uint32_t>(
      std::min(ThirdOf(deadline) / kNanosPerMs, kDrainMillisMax));
  return InstructCandidates(drain, recovery::InstructionKind::kDrain).status();
}

// Asks the primary to make the change; one whose node leaves hands over first,
// and the next one is asked. Notes the nodes that were told to. Returns nothing
// if nobody can make the change while the log runs. Errors: as AskPrimary.
absl::StatusOr<std::optional<RecoveryReport>> ChangeByPrimary(
    const ChangeMembersOptions& options, const ClusterConfiguration& from,
    const ClusterConfiguration& to, const MembersChange& change,
    Deadline deadline, std::vector<NodeId>& drained) {
  for (;;) {
    const Deadline begun_by =
        Deadline::AtNanos(Clock::Real().NowNanos() + ThirdOf(deadline));
    ALPHEUS_ASSIGN_OR_RETURN(
        AskedPrimary asked,
        AskPrimary(to,
                   {options.log_name, NodeId(options.as_node), begun_by,
                    deadline, int64_t{options.gather_ms} * kNanosPerMs},
                   change, PeersOf(from, to)));
    if (asked.made || !asked.leaving) return std::move(asked.made);
    const NodeId leaving = *asked.leaving;
    if (std::ranges::find(drained, leaving) != drained.end()) {
      return std::nullopt;
    }
    const absl::Status handed = HandOver(options, leaving, deadline);
    if (handed.ok() || absl::IsDeadlineExceeded(handed)) {
      drained.push_back(leaving);
    }
    if (!handed.ok()) return std::nullopt;
  }
}

// A drained candidate stands no more, whatever becomes of the change.
absl::Status WithDrained(const absl::Status& why,
                         const ChangeMembersOptions& options,
                         const std::vector<NodeId>& drained) {
  if (drained.empty()) return why;
  return {
      why.code(),
      absl::StrCat(why.message(), ". Before that the program that has log ",
                   options.log_name, " open was told to hand over, at node ",
                   absl::StrJoin(drained, ", ",
                                 [](std::string* text, NodeId node) {
                                   absl::StrAppend(text, node.value);
                                 }),
                   ": it stands for primary again after `alpheus elect`, "
                   "or when it is started again")};
}

}  // namespace

absl::StatusOr<RecoveryReport> ChangeLogMembers(
    const ChangeMembersOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration to,
                           quorum::LoadClusterFile(options.cluster_file));
  ClusterConfiguration from = to;
  if (!options.previous_cluster_file.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(
        from, quorum::LoadClusterFile(options.previous_cluster_file));
  }
  return ChangeLogMembers(options, from, to);
}

absl::StatusOr<RecoveryReport> ChangeLogMembers(
    const ChangeMembersOptions& options, const ClusterConfiguration& from,
    const ClusterConfiguration& to) {
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  ALPHEUS_RETURN_IF_ERROR(
      CheckReplaced(options.cluster_file, to, options.replaced));
  ALPHEUS_ASSIGN_OR_RETURN(MembersChange change,
                           ChangeBetween(from, to, options.replaced));
  LogOptions open;
  open.replication.log_name = options.log_name;
  const NodeId as_node(options.as_node);
  open.replication.node = SomePrimary(to, as_node).value;
  open.replication.open_timeout_ms = options.timeout_ms;
  open.replication.gather_ms = options.gather_ms;
  const Deadline deadline =
      Deadline::In(std::chrono::milliseconds(options.timeout_ms));
  ALPHEUS_RETURN_IF_ERROR(
      PrepareNewcomers(from, to, change, open, as_node, deadline));
  std::vector<NodeId> drained;
  absl::StatusOr<std::optional<RecoveryReport>> made =
      ChangeByPrimary(options, from, to, change, deadline, drained);
  if (!made.ok()) return WithDrained(made.status(), options, drained);
  if (made->has_value()) return **std::move(made);
  const int64_t rest_ms =
      (deadline.at_nanos() - Clock::Real().NowNanos()) / kNanosPerMs;
  open.replication.open_timeout_ms =
      static_cast<uint32_t>(std::max<int64_t>(rest_ms, 1));
  const absl::Status may_open =
      CheckMayOpen(options, to, open.replication.node);
  if (!may_open.ok()) return WithDrained(may_open, options, drained);
  absl::StatusOr<RecoveryReport> opened = OpenToChangeMembers(
      open, to, as_node, std::move(change), PeersOf(from, to));
  if (!opened.ok()) return WithDrained(opened.status(), options, drained);
  return opened;
}

}  // namespace alpheus
