// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/opening_quorums.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {

using quorum::QuorumSizes;

namespace {

uint32_t LeastOpeningQuorumSize(const QuorumSizes& sizes) {
  return std::max(sizes.replica_count - sizes.write_quorum + 1,
                  sizes.write_quorum);
}

// Returns B: the fewest members that leave no opening quorum among the others.
uint32_t Blocking(const QuorumSizes& sizes) {
  return sizes.replica_count - LeastOpeningQuorumSize(sizes) + 1;
}

bool Has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

Member MemberOf(const StateReport& report) {
  return {report.node, report.incarnation};
}

uint32_t Count(ReportSet set) {
  return static_cast<uint32_t>(std::popcount(set));
}

// Returns the reports of `among` that satisfy the predicate.
ReportSet Where(std::span<const StateReport> reports, ReportSet among,
                const std::function<bool(const StateReport&)>& is_so) {
  ReportSet set = 0;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (Contains(among, i) && is_so(reports[i])) set |= ReportSet{1} << i;
  }
  return set;
}

std::vector<Member> Both(const MemberList& a, const MemberList& b) {
  std::vector<Member> both;
  for (const Member& member : a.members) {
    if (Names(b, member)) both.push_back(member);
  }
  return both;
}

bool Fits(const std::vector<NodeId>& nodes, const QuorumSizes& sizes) {
  return nodes.size() == sizes.replica_count &&
         std::is_sorted(nodes.begin(), nodes.end()) &&
         std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end();
}

// Returns true if `found` is the list after the change, or a competing one with
// its id and sizes.
bool IsAfter(const MembersChange& change, const Configuration& found) {
  return found.id == change.to_id && change.to_id != change.from_id &&
         found.replica_count == change.to.replica_count &&
         found.write_quorum == change.to.write_quorum;
}

bool IsBefore(const MembersChange& change, const Configuration& found) {
  const auto same = [](const Member& member, NodeId node) {
    return member.node == node;
  };
  return found.id == change.from_id &&
         found.replica_count == change.from.replica_count &&
         found.write_quorum == change.from.write_quorum &&
         std::equal(found.members.begin(), found.members.end(),
                    change.from_nodes.begin(), change.from_nodes.end(), same);
}

// Returns the report of whatever incarnation serves the node, or nullptr.
const StateReport* ReportOf(std::span<const StateReport> reports, NodeId node) {
  const auto at = std::find_if(
      reports.begin(), reports.end(),
      [&](const StateReport& report) { return report.node == node; });
  return at == reports.end() ? nullptr : &*at;
}

// Returns the list's members in `among` that reported and are not blank.
ReportSet ReportersOf(const MemberList& list, ReportSet among,
                      std::span<const StateReport> reports) {
  return Where(reports, among, [&](const StateReport& report) {
    return !report.blank && Names(list, MemberOf(report));
  });
}

ReportSet Having(const Configuration& configuration,
                 std::span<const StateReport> reports) {
  return Where(reports, ~ReportSet{0}, [&](const StateReport& report) {
    return !report.blank && report.configuration == configuration;
  });
}

// Returns true if the report has the list, whichever list that was made from.
bool IsOf(const MemberList& list, const StateReport& report) {
  const MemberList& own = report.configuration;
  return !report.blank && own == list;
}

// Case 2 of OPQ4. Ids never go back: a replica with an older list never had the
// one that followed. A list after a replacement never names the replaced
// replica, which could come back as a newcomer only.
bool WasNotReplaced(const Member& member, const MemberList& list,
                    std::span<const StateReport> reports) {
  const ReportSet without =
      Where(reports, ~ReportSet{0}, [&](const StateReport& a) {
        return Names(list, MemberOf(a)) &&
               (a.blank || a.configuration.id < list.id ||
                Names(a.configuration, member));
      });
  return Count(without) >= LeastOpeningQuorumSize(SizesOf(list));
}

// Returns the list's members in `among` that were surely not replaced.
ReportSet CurrentOf(const MemberList& list, ReportSet among,
                    std::span<const StateReport> reports) {
  return Where(reports, ReportersOf(list, among, reports),
               [&](const StateReport& report) {
                 return WasNotReplaced(MemberOf(report), list, reports);
               });
}

ReportSet Suspects(std::span<const StateReport> reports) {
  return Where(reports, ~ReportSet{0},
               [](const StateReport& report) { return report.suspect; });
}

ReportSet BlankOf(const MemberList& list,
                  std::span<const StateReport> reports) {
  return Where(reports, ~ReportSet{0}, [&](const StateReport& report) {
    return report.blank && Names(list, MemberOf(report));
  });
}

// Progress of an opening in retiring a list that is neither E's nor retired.
struct Retirement {
  QuorumSizes sizes;
  uint32_t reported = 0;  // members that reported and are eligible
  uint32_t current = 0;   // of these, not replaced and not suspect
  uint32_t stay = 0;      // of those that reported, members of the target

  // Returns true if the list is retired once the members that stay have
  // installed.
  bool is_possible() const {
    return reported >= LeastOpeningQuorumSize(sizes) &&
           current >= sizes.read_quorum && stay >= needed();
  }
  uint32_t needed() const { return Blocking(sizes); }
};

// Whether blank members of a list count as promising for it (OPQ8).
enum class BlankMembers { kSayNothing, kPromise };

// Returns the retirement of `list`. `among` are the eligible replicas.
Retirement RetirementOf(
    const MemberList& list, const Decision& decision, ReportSet among,
    std::span<const StateReport> reports, const MemberList& target,
    BlankMembers blank_members = BlankMembers::kSayNothing) {
  ReportSet reported = ReportersOf(list, among, reports);
  const ReportSet current =
      (reported & decision.members) | CurrentOf(list, among, reports);
  const ReportSet stay =
      Where(reports, reported, [&](const StateReport& report) {
        return Names(target, MemberOf(report));
      });
  const ReportSet blank =
      blank_members == BlankMembers::kPromise ? BlankOf(list, reports) : 0;
  return {SizesOf(list), Count(reported | blank),
          Count((current | blank) & ~Suspects(reports)), Count(stay)};
}

absl::Status CheckSafe(const MembersChange& change) {
  uint32_t stay = 0;
  for (const NodeId node : change.from_nodes) {
    stay += Has(change.to_nodes, node) && !Has(change.replaced, node) ? 1 : 0;
  }
  const uint32_t blocking = Blocking(change.from);
  const uint32_t opening = LeastOpeningQuorumSize(change.to);
  const bool few_stay = stay < change.from.write_quorum;
  const bool few_open = opening < blocking;
  if (!few_stay && !few_open) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "from configuration ", change.from_id,
      " (N = ", change.from.replica_count, ", W = ", change.from.write_quorum,
      ") to ", change.to_id, " (N = ", change.to.replica_count,
      ", W = ", change.to.write_quorum, "): ",
      few_stay ? absl::StrCat(stay, " members stay, W = ",
                              change.from.write_quorum, " must")
               : absl::StrCat("by the new list ", opening,
                              " members are enough to open the log, and the "
                              "old list ends only when ",
                              blocking, " members have the new one"),
      ". Nothing was changed; make the change in several, of one member or one "
      "step of W each"));
}

}  // namespace

QuorumSizes SizesOf(const MemberList& list) {
  return {list.replica_count, list.write_quorum,
          list.replica_count - list.write_quorum + 1};
}

absl::Status CheckChange(const MembersChange& change) {
  const bool is_replaced_in_both = std::all_of(
      change.replaced.begin(), change.replaced.end(), [&](NodeId node) {
        return Has(change.from_nodes, node) && Has(change.to_nodes, node);
      });
  if (!Fits(change.from_nodes, change.from) ||
      !Fits(change.to_nodes, change.to) || !is_replaced_in_both) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a change from ", change.from_nodes.size(), " nodes with N = ",
        change.from.replica_count, " to ", change.to_nodes.size(),
        " with N = ", change.to.replica_count, ", ", change.replaced.size(),
        " replaced: expected N nodes each, in order, and only such replaced "
        "that are in both. Correct the lists of members"));
  }
  const bool same = change.from_nodes == change.to_nodes &&
                    change.from.write_quorum == change.to.write_quorum;
  if (same && change.replaced.empty() && change.from_id == change.to_id) {
    return absl::InvalidArgumentError(
        "nothing changes between the two lists of members");
  }
  if (change.to_id < change.from_id ||
      (change.to_id == change.from_id && !same)) {
    return absl::InvalidArgumentError(
        absl::StrCat("configuration ", change.to_id, " after ", change.from_id,
                     ": other members or another W need a higher number. Raise "
                     "configuration_id in the new list of members"));
  }
  return CheckSafe(change);
}

std::string DescribeList(uint64_t id, const std::vector<NodeId>& nodes,
                         uint32_t write_quorum) {
  std::string text = absl::StrCat("configuration ", id, " of nodes ");
  for (size_t i = 0; i < nodes.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", nodes[i].value);
  }
  absl::StrAppend(&text, " (N = ", nodes.size(), ", W = ", write_quorum, ")");
  return text;
}

std::string DescribeList(const MemberList& list) {
  std::vector<NodeId> nodes;
  for (const Member& member : list.members) nodes.push_back(member.node);
  return DescribeList(list.id, nodes, list.write_quorum);
}

absl::Status CheckFound(const MembersChange& change,
                        const Configuration& found) {
  if (IsBefore(change, found) || IsAfter(change, found)) {
    return absl::OkStatus();
  }
  const bool is_step = change.to_id != change.from_id;
  return absl::FailedPreconditionError(absl::StrCat(
      "the log has ", DescribeList(found), ", expected ",
      DescribeList(change.from_id, change.from_nodes, change.from.write_quorum),
      is_step ? absl::StrCat(" or, if the change was cut off, ",
                             DescribeList(change.to_id, change.to_nodes,
                                          change.to.write_quorum))
              : "",
      ". Give the list of members that the log has"));
}

absl::StatusOr<Configuration> TargetOf(const MembersChange& change,
                                       const Decision& decision,
                                       std::span<const StateReport> reports) {
  const Configuration& found = decision.configuration;
  ALPHEUS_RETURN_IF_ERROR(CheckFound(change, found));
  Configuration target;
  target.id = change.to_id;
  target.replica_count = change.to.replica_count;
  target.write_quorum = change.to.write_quorum;
  for (const NodeId node : change.to_nodes) {
    const auto named =
        std::find_if(found.members.begin(), found.members.end(),
                     [&](const Member& member) { return member.node == node; });
    const StateReport* const report = ReportOf(reports, node);
    const bool is_new =
        named == found.members.end() ||
        (Has(change.replaced, node) && report != nullptr && report->blank);
    if (!is_new) {
      target.members.push_back(*named);
    } else if (report != nullptr && !report->blank) {
      return absl::FailedPreconditionError(absl::StrCat(
          "node ", node.value, " holds a replica, of configuration ",
          report->configuration.id,
          ", that is not a member: its earlier promises and acknowledgements "
          "do not count now. Remove it there, so that the node joins with a "
          "blank replica"));
    } else if (report != nullptr) {
      target.members.push_back(MemberOf(*report));
    } else {
      return absl::UnavailableError(
          absl::StrCat("node ", node.value,
                       ", which is new, has not sent its state report"));
    }
  }
  const MemberList& before = found;
  const MemberList& after = target;
  target.made_from = after == before ? found.made_from : before;
  return target;
}

namespace {

// Returns true if B(list) members have moved on to `newest`.
bool IsRetired(const MemberList& list, const MemberList& newest,
               std::span<const StateReport> reports) {
  const ReportSet moved_on =
      Where(reports, ReportersOf(list, ~ReportSet{0}, reports),
            [&](const StateReport& report) { return IsOf(newest, report); });
  return Count(moved_on) >= Blocking(SizesOf(list));
}

// Returns the replicas that have E's list or a retired one.
ReportSet OnRetiredLists(const MemberList& newest,
                         std::span<const StateReport> reports) {
  return Where(reports, ~ReportSet{0}, [&](const StateReport& report) {
    if (report.blank) return false;
    return IsOf(newest, report) ||
           IsRetired(report.configuration, newest, reports);
  });
}

// Returns true if the list can end: OPQ5, OPQ8 and OPQ9. `among` are the
// eligible replicas.
bool CanRetire(const Configuration& own, const Decision& decision,
               ReportSet among, std::span<const StateReport> reports,
               const Configuration& target) {
  if (own == target) return true;
  const auto can_retire = [&](const MemberList& list,
                              BlankMembers blank_members) {
    return RetirementOf(list, decision, among, reports, target, blank_members)
        .is_possible();
  };
  if (can_retire(own, BlankMembers::kSayNothing)) return true;
  const std::optional<MemberList>& from = own.made_from;
  const bool is_parent_over =
      from && (IsRetired(*from, decision.configuration, reports) ||
               can_retire(*from, BlankMembers::kSayNothing));
  return is_parent_over && can_retire(own, BlankMembers::kPromise);
}

// OPQ5. Returns the other replicas whose list can be retired. A list is retired
// only by replicas whose own lists are retired, so this removes replicas until
// none is left to remove.
ReportSet OnRetirableLists(const Decision& decision, ReportSet retired,
                           std::span<const StateReport> reports,
                           const Configuration& target) {
  ReportSet retirable = Where(reports, ~retired, [](const StateReport& report) {
    return !report.blank;
  });
  for (;;) {
    const ReportSet among = retired | retirable;
    const ReportSet left =
        Where(reports, retirable, [&](const StateReport& report) {
          return CanRetire(report.configuration, decision, among, reports,
                           target);
        });
    if (left == retirable) return retirable;
    retirable = left;
  }
}

void Add(const MemberList& list, std::vector<MemberList>& lists) {
  if (std::find(lists.begin(), lists.end(), list) == lists.end()) {
    lists.push_back(list);
  }
}

// Returns the lists of `retirable` that must be retired. Where a list is
// retired only with its blank members (OPQ8), the list that it was made from
// must be retired as well.
std::vector<MemberList> UnretiredOf(ReportSet retirable,
                                    const Promises& promises,
                                    const Decision& decision,
                                    std::span<const StateReport> reports,
                                    const Configuration& target) {
  std::vector<MemberList> unretired;
  for (size_t i = 0; i < reports.size(); ++i) {
    const Configuration& own = reports[i].configuration;
    if (!Contains(retirable, i) || own == target) continue;
    Add(own, unretired);
    const bool needs_blank_members =
        !RetirementOf(own, decision, promises.eligible, reports, target)
             .is_possible();
    if (needs_blank_members && own.made_from &&
        !IsRetired(*own.made_from, decision.configuration, reports)) {
      Add(*own.made_from, unretired);
    }
  }
  return unretired;
}

// OPQ7. Retirement of the list that E's configuration was made from.
Retirement RetirementOfParent(const Promises& promises,
                              const Decision& decision,
                              std::span<const StateReport> reports,
                              const MemberList& target) {
  return RetirementOf(*decision.configuration.made_from, decision,
                      promises.eligible, reports, target);
}

// Returns true if a replica has `newest` that its parent does not name.
// Newcomers get a list only when its parent is retired.
bool HasNewcomer(const Configuration& newest,
                 std::span<const StateReport> reports) {
  const ReportSet members =
      ReportersOf(*newest.made_from, ~ReportSet{0}, reports);
  return (Having(newest, reports) & ~members) != 0;
}

// Returns true if the parent of E's list is retired: B have moved on, a
// newcomer has E's list, or OQ have it.
bool IsParentRetired(const Promises& promises, const Configuration& newest,
                     std::span<const StateReport> reports) {
  return IsRetired(*newest.made_from, newest, reports) ||
         HasNewcomer(newest, reports) ||
         promises.have >= LeastOpeningQuorumSize(SizesOf(newest));
}

ParentState JudgeParent(const Promises& promises, const Decision& decision,
                        std::span<const StateReport> reports,
                        const MemberList& target) {
  const Configuration& newest = decision.configuration;
  if (!newest.made_from) return ParentState::kUnknown;
  if (IsParentRetired(promises, newest, reports)) return ParentState::kRetired;
  return RetirementOfParent(promises, decision, reports, target).is_possible()
             ? ParentState::kCanRetire
             : ParentState::kMayBeInForce;
}

}  // namespace

Promises JudgePromises(const Decision& decision,
                       std::span<const StateReport> reports,
                       const Configuration& target,
                       const MembersChange* change) {
  const Configuration& newest = decision.configuration;
  const ReportSet retired = OnRetiredLists(newest, reports);
  const ReportSet retirable =
      OnRetirableLists(decision, retired, reports, target);
  Promises promises;
  promises.eligible = retired | retirable;
  promises.unretired =
      UnretiredOf(retirable, promises, decision, reports, target);
  promises.counts = promises.eligible & decision.members;
  promises.have = Count(promises.counts & Having(newest, reports));
  promises.parent = JudgeParent(promises, decision, reports, target);
  promises.is_half_done = change != nullptr && newest == target &&
                          (promises.parent == ParentState::kRetired ||
                           promises.parent == ParentState::kCanRetire);
  // OPQ7: the members that retire the parent may have E's list by an older
  // epoch than one that opened by the parent since. They may go back, as the
  // ids may be equal.
  const bool is_first = promises.is_half_done && !HasNewcomer(newest, reports);
  if (promises.parent == ParentState::kCanRetire || is_first) {
    Add(*newest.made_from, promises.unretired);
  }
  return promises;
}

namespace {

bool IsNewcomer(const Member& member, const Decision& decision,
                std::span<const StateReport> reports) {
  return Where(reports, decision.newcomers, [&](const StateReport& report) {
           return MemberOf(report) == member;
         }) != 0;
}

absl::Status CheckEnough(uint32_t counted, uint32_t needed, const char* what,
                         const Configuration& of,
                         const std::string& against = "") {
  if (counted >= needed) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      counted, " of the replicas that reported ", what, " configuration ",
      of.id, ", ", needed, " are needed", against));
}

std::string Describe(const Retirement& retirement) {
  return absl::StrCat(
      " the log may still be opened: of its members ", retirement.reported,
      " reported, ", LeastOpeningQuorumSize(retirement.sizes), " must, ",
      retirement.current, " of them surely know what they did, ",
      retirement.sizes.read_quorum, " must, and ", retirement.stay,
      " of them stay, ", retirement.needed(), " must");
}

absl::Status ParentMayBeInForce(const Promises& promises,
                                const Decision& decision,
                                std::span<const StateReport> reports,
                                const MemberList& target) {
  const Configuration& found = decision.configuration;
  const Retirement retirement =
      RetirementOfParent(promises, decision, reports, target);
  std::string nodes;
  for (const Member& member : found.made_from->members) {
    absl::StrAppend(&nodes, nodes.empty() ? "" : ", ", member.node.value);
  }
  return absl::UnavailableError(absl::StrCat(
      promises.have, " of the replicas that reported have themselves ",
      "configuration ", found.id, ", and by what it was made from, ",
      found.made_from->id, " of nodes ", nodes, ",", Describe(retirement),
      ". Start all of them, and make the change again from that list (`alpheus "
      "reconfigure --from`)"));
}

// Says of each member that reported and does not count by which list the log
// may still be opened, and what to do about it.
std::string WhoStandsAgainst(const Promises& promises, const Decision& decision,
                             std::span<const StateReport> reports,
                             const Configuration& target) {
  std::string text;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (!Contains(decision.members & ~promises.counts, i)) continue;
    const Configuration& own = reports[i].configuration;
    const Retirement retirement =
        RetirementOf(own, decision, promises.eligible | Having(own, reports),
                     reports, target);
    absl::StrAppend(&text, "; node ", reports[i].node.value,
                    " has configuration ", own.id, ", by which",
                    Describe(retirement));
  }
  if (text.empty()) return text;
  return absl::StrCat(
      text,
      ". Start all members of that list, and make the change again from "
      "it (`alpheus reconfigure --from`); if they have reported, stop "
      "the node that has the list which is not wanted, and make the "
      "other change again");
}

}  // namespace

absl::Status CheckPromises(const Promises& promises, const Decision& decision,
                           std::span<const StateReport> reports,
                           const Configuration& target, bool is_change,
                           uint32_t needed) {
  const Configuration& found = decision.configuration;
  ReportSet counted = promises.counts;
  if (promises.is_half_done) counted |= decision.newcomers;
  ALPHEUS_RETURN_IF_ERROR(
      CheckEnough(Count(counted), needed, "are members of", found,
                  WhoStandsAgainst(promises, decision, reports, target)));
  if (promises.parent == ParentState::kMayBeInForce) {
    return ParentMayBeInForce(promises, decision, reports, target);
  }
  ALPHEUS_RETURN_IF_ERROR(CheckEnough(Count(counted & ~Suspects(reports)),
                                      SizesOf(found).read_quorum,
                                      "know what they did in", found));
  if (!is_change) return absl::OkStatus();
  // OPQ6. Until then the list before `found` may be in force.
  if (target != found) {
    const ReportSet moved_on = ReportersOf(
        found, promises.eligible & Having(target, reports), reports);
    ALPHEUS_RETURN_IF_ERROR(CheckEnough(
        promises.have + Count(moved_on), LeastOpeningQuorumSize(SizesOf(found)),
        "have themselves", found,
        ": let the log be opened by that list once, or make the change to it "
        "again, and change it then"));
  }
  const ReportSet of_target =
      Where(reports, ~ReportSet{0}, [&](const StateReport& report) {
        return Names(target, MemberOf(report));
      });
  return CheckEnough(Count(of_target), LeastOpeningQuorumSize(SizesOf(target)),
                     "are to be members of", target);
}

InstallQuorums QuorumsToInstall(const Promises& promises,
                                const Decision& decision,
                                std::span<const StateReport> reports,
                                const Configuration& target, bool is_change) {
  const Configuration& found = decision.configuration;
  InstallQuorums quorums;
  std::vector<InstallQuorum>& before = quorums.before_newcomers;
  const auto add = [&](const MemberList& of, uint32_t needed) {
    InstallQuorum quorum{Both(of, target), needed};
    std::erase_if(quorum.members, [&](const Member& member) {
      return IsNewcomer(member, decision, reports);
    });
    before.push_back(std::move(quorum));
  };
  if (!promises.is_half_done) add(found, found.write_quorum);
  for (const MemberList& live : promises.unretired) {
    add(live, Blocking(SizesOf(live)));
  }
  quorums.to_show = before;
  const QuorumSizes sizes = SizesOf(target);
  // OPQ6: a list that counts only with members that lag is finished first.
  const bool is_finished =
      promises.have >= LeastOpeningQuorumSize(SizesOf(found));
  quorums.to_show.push_back({target.members, is_change || !is_finished
                                                 ? LeastOpeningQuorumSize(sizes)
                                                 : sizes.write_quorum});
  return quorums;
}

}  // namespace alpheus::recovery
