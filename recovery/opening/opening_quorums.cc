// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/opening_quorums.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

uint32_t LeastOpeningQuorum(const QuorumSizes& sizes) {
  return std::max(sizes.replica_count - sizes.write_quorum + 1,
                  sizes.write_quorum);
}

// Returns B: the fewest members that leave no opening quorum among the others.
uint32_t Blocking(const QuorumSizes& sizes) {
  return sizes.replica_count - LeastOpeningQuorum(sizes) + 1;
}

bool Has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

Member MemberOf(const Answer& answer) {
  return {answer.node, answer.incarnation};
}

uint32_t Count(AnswerSet set) {
  return static_cast<uint32_t>(std::popcount(set));
}

// Returns the answers of `among` that satisfy the predicate.
AnswerSet Where(std::span<const Answer> answers, AnswerSet among,
                const std::function<bool(const Answer&)>& is_so) {
  AnswerSet set = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (Contains(among, i) && is_so(answers[i])) set |= AnswerSet{1} << i;
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

// Returns true if `found` is the list after the change, or a rival with its id
// and sizes.
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

// Returns the answer of whatever incarnation answers at the node, or nullptr.
const Answer* AnswerOf(std::span<const Answer> answers, NodeId node) {
  const auto at =
      std::find_if(answers.begin(), answers.end(),
                   [&](const Answer& answer) { return answer.node == node; });
  return at == answers.end() ? nullptr : &*at;
}

// Returns the list's members in `among` that answered and are not blank.
AnswerSet AnsweredOf(const MemberList& list, AnswerSet among,
                     std::span<const Answer> answers) {
  return Where(answers, among, [&](const Answer& answer) {
    return !answer.blank && Names(list, MemberOf(answer));
  });
}

AnswerSet Having(const Configuration& configuration,
                 std::span<const Answer> answers) {
  return Where(answers, ~AnswerSet{0}, [&](const Answer& answer) {
    return !answer.blank && answer.configuration == configuration;
  });
}

// Returns true if the answer has the list, whichever list that was made from.
bool IsOf(const MemberList& list, const Answer& answer) {
  const MemberList& own = answer.configuration;
  return !answer.blank && own == list;
}

// Case 2 of OQ4. Ids never go back: a replica with an older list never had the
// one that followed. A list after a replacement never names the replaced
// replica, which could come back as a newcomer only.
bool WasNotReplaced(const Member& member, const MemberList& list,
                    std::span<const Answer> answers) {
  const AnswerSet without = Where(answers, ~AnswerSet{0}, [&](const Answer& a) {
    return Names(list, MemberOf(a)) &&
           (a.blank || a.configuration.id < list.id ||
            Names(a.configuration, member));
  });
  return Count(without) >= LeastOpeningQuorum(SizesOf(list));
}

// Returns the list's members in `among` that were surely not replaced.
AnswerSet CurrentOf(const MemberList& list, AnswerSet among,
                    std::span<const Answer> answers) {
  return Where(answers, AnsweredOf(list, among, answers),
               [&](const Answer& answer) {
                 return WasNotReplaced(MemberOf(answer), list, answers);
               });
}

AnswerSet Suspects(std::span<const Answer> answers) {
  return Where(answers, ~AnswerSet{0},
               [](const Answer& answer) { return answer.suspect; });
}

AnswerSet BlankOf(const MemberList& list, std::span<const Answer> answers) {
  return Where(answers, ~AnswerSet{0}, [&](const Answer& answer) {
    return answer.blank && Names(list, MemberOf(answer));
  });
}

// Progress of an opening in ending a list that is neither E's nor settled.
struct Ending {
  QuorumSizes sizes;
  uint32_t answered = 0;  // members that answered and are heeded
  uint32_t current = 0;   // of these, not replaced and not suspect
  uint32_t stay = 0;      // of those that answered, members of the target

  // Returns true if the list ends once the members that stay have installed.
  bool is_possible() const {
    return answered >= LeastOpeningQuorum(sizes) &&
           current >= sizes.read_quorum && stay >= needed();
  }
  uint32_t needed() const { return Blocking(sizes); }
};

// Whether blank members of a list count as promising for it (OQ8).
enum class BlankOnes { kSayNothing, kPromise };

// Returns the ending of `list`. `among` are the heeded replicas.
Ending EndingOf(const MemberList& list, const Decision& decision,
                AnswerSet among, std::span<const Answer> answers,
                const MemberList& target,
                BlankOnes blank_ones = BlankOnes::kSayNothing) {
  AnswerSet answered = AnsweredOf(list, among, answers);
  const AnswerSet current =
      (answered & decision.members) | CurrentOf(list, among, answers);
  const AnswerSet stay = Where(answers, answered, [&](const Answer& answer) {
    return Names(target, MemberOf(answer));
  });
  const AnswerSet blank =
      blank_ones == BlankOnes::kPromise ? BlankOf(list, answers) : 0;
  return {SizesOf(list), Count(answered | blank),
          Count((current | blank) & ~Suspects(answers)), Count(stay)};
}

absl::Status CheckSafe(const MembersChange& change) {
  uint32_t stay = 0;
  for (const NodeId node : change.from_nodes) {
    stay += Has(change.to_nodes, node) && !Has(change.replaced, node) ? 1 : 0;
  }
  const uint32_t blocking = Blocking(change.from);
  const uint32_t opening = LeastOpeningQuorum(change.to);
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
                                       std::span<const Answer> answers) {
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
    const Answer* const answer = AnswerOf(answers, node);
    const bool is_new =
        named == found.members.end() ||
        (Has(change.replaced, node) && answer != nullptr && answer->blank);
    if (!is_new) {
      target.members.push_back(*named);
    } else if (answer != nullptr && !answer->blank) {
      return absl::FailedPreconditionError(absl::StrCat(
          "node ", node.value, " holds a replica, of configuration ",
          answer->configuration.id,
          ", that is no member: what it promised and acknowledged then says "
          "nothing now. Remove it there, so that the node joins blank"));
    } else if (answer != nullptr) {
      target.members.push_back(MemberOf(*answer));
    } else {
      return absl::UnavailableError(absl::StrCat(
          "node ", node.value, ", which is new, has not answered"));
    }
  }
  const MemberList& before = found;
  const MemberList& after = target;
  target.made_from = after == before ? found.made_from : before;
  return target;
}

namespace {

// Returns true if B(list) members have moved on to `newest`.
bool IsSettled(const MemberList& list, const MemberList& newest,
               std::span<const Answer> answers) {
  const AnswerSet moved_on =
      Where(answers, AnsweredOf(list, ~AnswerSet{0}, answers),
            [&](const Answer& answer) { return IsOf(newest, answer); });
  return Count(moved_on) >= Blocking(SizesOf(list));
}

// Returns the replicas that have E's list or a settled one.
AnswerSet SettledOnes(const MemberList& newest,
                      std::span<const Answer> answers) {
  return Where(answers, ~AnswerSet{0}, [&](const Answer& answer) {
    if (answer.blank) return false;
    return IsOf(newest, answer) ||
           IsSettled(answer.configuration, newest, answers);
  });
}

// Returns true if the list can end: OQ5, OQ8 and OQ9. `among` are the heeded
// replicas.
bool Ends(const Configuration& own, const Decision& decision, AnswerSet among,
          std::span<const Answer> answers, const Configuration& target) {
  if (own == target) return true;
  const auto ends = [&](const MemberList& list, BlankOnes blank_ones) {
    return EndingOf(list, decision, among, answers, target, blank_ones)
        .is_possible();
  };
  if (ends(own, BlankOnes::kSayNothing)) return true;
  const std::optional<MemberList>& from = own.made_from;
  const bool is_origin_over =
      from && (IsSettled(*from, decision.configuration, answers) ||
               ends(*from, BlankOnes::kSayNothing));
  return is_origin_over && ends(own, BlankOnes::kPromise);
}

// OQ5. Returns the other replicas whose list can end. A list ends only by
//      replicas whose own lists end, so this removes replicas until none is
//      left to remove.
AnswerSet EndableOnes(const Decision& decision, AnswerSet settled,
                      std::span<const Answer> answers,
                      const Configuration& target) {
  AnswerSet endable = Where(answers, ~settled,
                            [](const Answer& answer) { return !answer.blank; });
  for (;;) {
    const AnswerSet among = settled | endable;
    const AnswerSet left = Where(answers, endable, [&](const Answer& answer) {
      return Ends(answer.configuration, decision, among, answers, target);
    });
    if (left == endable) return endable;
    endable = left;
  }
}

void Add(const MemberList& list, std::vector<MemberList>& lists) {
  if (std::find(lists.begin(), lists.end(), list) == lists.end()) {
    lists.push_back(list);
  }
}

// Returns the lists of `endable` that must end. Where a list ends only with its
// blank members (OQ8), the list that it was made from must end as well.
std::vector<MemberList> UnsettledOf(AnswerSet endable, const Promises& promises,
                                    const Decision& decision,
                                    std::span<const Answer> answers,
                                    const Configuration& target) {
  std::vector<MemberList> unsettled;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Configuration& own = answers[i].configuration;
    if (!Contains(endable, i) || own == target) continue;
    Add(own, unsettled);
    const bool is_by_blank_ones =
        !EndingOf(own, decision, promises.heeded, answers, target)
             .is_possible();
    if (is_by_blank_ones && own.made_from &&
        !IsSettled(*own.made_from, decision.configuration, answers)) {
      Add(*own.made_from, unsettled);
    }
  }
  return unsettled;
}

// OQ7. Ending of the list that E's configuration was made from.
Ending EndingOfOrigin(const Promises& promises, const Decision& decision,
                      std::span<const Answer> answers,
                      const MemberList& target) {
  return EndingOf(*decision.configuration.made_from, decision, promises.heeded,
                  answers, target);
}

// Returns true if a replica has `newest` that its origin does not name.
// Newcomers get a list only when its origin has ended.
bool HasNewcomer(const Configuration& newest, std::span<const Answer> answers) {
  const AnswerSet members =
      AnsweredOf(*newest.made_from, ~AnswerSet{0}, answers);
  return (Having(newest, answers) & ~members) != 0;
}

// Returns true if the origin of E's list is settled: B have moved on, a
// newcomer has E's list, or OQ have it.
bool IsOriginSettled(const Promises& promises, const Configuration& newest,
                     std::span<const Answer> answers) {
  return IsSettled(*newest.made_from, newest, answers) ||
         HasNewcomer(newest, answers) ||
         promises.have >= LeastOpeningQuorum(SizesOf(newest));
}

Origin JudgeOrigin(const Promises& promises, const Decision& decision,
                   std::span<const Answer> answers, const MemberList& target) {
  const Configuration& newest = decision.configuration;
  if (!newest.made_from) return Origin::kUnknown;
  if (IsOriginSettled(promises, newest, answers)) return Origin::kSettled;
  return EndingOfOrigin(promises, decision, answers, target).is_possible()
             ? Origin::kEnds
             : Origin::kMayBeInForce;
}

}  // namespace

Promises JudgePromises(const Decision& decision,
                       std::span<const Answer> answers,
                       const Configuration& target,
                       const MembersChange* change) {
  const Configuration& newest = decision.configuration;
  const AnswerSet settled = SettledOnes(newest, answers);
  const AnswerSet endable = EndableOnes(decision, settled, answers, target);
  Promises promises;
  promises.heeded = settled | endable;
  promises.unsettled =
      UnsettledOf(endable, promises, decision, answers, target);
  promises.counts = promises.heeded & decision.members;
  promises.have = Count(promises.counts & Having(newest, answers));
  promises.origin = JudgeOrigin(promises, decision, answers, target);
  promises.is_half_done =
      change != nullptr && newest == target &&
      (promises.origin == Origin::kSettled || promises.origin == Origin::kEnds);
  // OQ7: the members that settle the origin may have E's list by an older epoch
  // than one that opened by the origin since. They may go back, as the ids may
  // be equal.
  const bool is_first = promises.is_half_done && !HasNewcomer(newest, answers);
  if (promises.origin == Origin::kEnds || is_first) {
    Add(*newest.made_from, promises.unsettled);
  }
  return promises;
}

namespace {

bool IsNewcomer(const Member& member, const Decision& decision,
                std::span<const Answer> answers) {
  return Where(answers, decision.newcomers, [&](const Answer& answer) {
           return MemberOf(answer) == member;
         }) != 0;
}

absl::Status CheckEnough(uint32_t counted, uint32_t needed, const char* what,
                         const Configuration& of,
                         const std::string& against = "") {
  if (counted >= needed) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      counted, " of the replicas that answered ", what, " configuration ",
      of.id, ", ", needed, " are needed", against));
}

std::string Describe(const Ending& ending) {
  return absl::StrCat(" the log may still be opened: of its members ",
                      ending.answered, " answered, ",
                      LeastOpeningQuorum(ending.sizes), " must, ",
                      ending.current, " of them surely know what they did, ",
                      ending.sizes.read_quorum, " must, and ", ending.stay,
                      " of them stay, ", ending.needed(), " must");
}

absl::Status OriginMayBeInForce(const Promises& promises,
                                const Decision& decision,
                                std::span<const Answer> answers,
                                const MemberList& target) {
  const Configuration& found = decision.configuration;
  const Ending ending = EndingOfOrigin(promises, decision, answers, target);
  std::string nodes;
  for (const Member& member : found.made_from->members) {
    absl::StrAppend(&nodes, nodes.empty() ? "" : ", ", member.node.value);
  }
  return absl::UnavailableError(absl::StrCat(
      promises.have, " of the replicas that answered have themselves ",
      "configuration ", found.id, ", and by what it was made from, ",
      found.made_from->id, " of nodes ", nodes, ",", Describe(ending),
      ". Start all of them, and make the change again from that list (`alpheus "
      "reconfigure --from`)"));
}

// Says of each member that answered and does not count by which list the log
// may still be opened, and what to do about it.
std::string WhoStandsAgainst(const Promises& promises, const Decision& decision,
                             std::span<const Answer> answers,
                             const Configuration& target) {
  std::string text;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!Contains(decision.members & ~promises.counts, i)) continue;
    const Configuration& own = answers[i].configuration;
    const Ending ending = EndingOf(
        own, decision, promises.heeded | Having(own, answers), answers, target);
    absl::StrAppend(&text, "; node ", answers[i].node.value,
                    " has configuration ", own.id, ", by which",
                    Describe(ending));
  }
  if (text.empty()) return text;
  return absl::StrCat(
      text,
      ". Start all members of that list, and make the change again from "
      "it (`alpheus reconfigure --from`); if they have answered, stop "
      "the node that has the list which is not wanted, and make the "
      "other change again");
}

}  // namespace

absl::Status CheckPromises(const Promises& promises, const Decision& decision,
                           std::span<const Answer> answers,
                           const Configuration& target, bool is_change,
                           uint32_t needed) {
  const Configuration& found = decision.configuration;
  AnswerSet counted = promises.counts;
  if (promises.is_half_done) counted |= decision.newcomers;
  ALPHEUS_RETURN_IF_ERROR(
      CheckEnough(Count(counted), needed, "are members of", found,
                  WhoStandsAgainst(promises, decision, answers, target)));
  if (promises.origin == Origin::kMayBeInForce) {
    return OriginMayBeInForce(promises, decision, answers, target);
  }
  ALPHEUS_RETURN_IF_ERROR(CheckEnough(Count(counted & ~Suspects(answers)),
                                      SizesOf(found).read_quorum,
                                      "know what they did in", found));
  if (!is_change) return absl::OkStatus();
  // OQ6. Until then the list before `found` may be in force.
  if (target != found) {
    const AnswerSet moved_on =
        AnsweredOf(found, promises.heeded & Having(target, answers), answers);
    ALPHEUS_RETURN_IF_ERROR(CheckEnough(
        promises.have + Count(moved_on), LeastOpeningQuorum(SizesOf(found)),
        "have themselves", found,
        ": let the log be opened by that list once, or make the change to it "
        "again, and change it then"));
  }
  const AnswerSet of_target = Where(
      answers, ~AnswerSet{0},
      [&](const Answer& answer) { return Names(target, MemberOf(answer)); });
  return CheckEnough(Count(of_target), LeastOpeningQuorum(SizesOf(target)),
                     "are to be members of", target);
}

InstallQuorums QuorumsToInstall(const Promises& promises,
                                const Decision& decision,
                                std::span<const Answer> answers,
                                const Configuration& target, bool is_change) {
  const Configuration& found = decision.configuration;
  InstallQuorums quorums;
  std::vector<InstallQuorum>& before = quorums.before_newcomers;
  const auto add = [&](const MemberList& of, uint32_t needed) {
    InstallQuorum quorum{Both(of, target), needed};
    std::erase_if(quorum.members, [&](const Member& member) {
      return IsNewcomer(member, decision, answers);
    });
    before.push_back(std::move(quorum));
  };
  if (!promises.is_half_done) add(found, found.write_quorum);
  for (const MemberList& live : promises.unsettled) {
    add(live, Blocking(SizesOf(live)));
  }
  quorums.to_show = before;
  const QuorumSizes sizes = SizesOf(target);
  // OQ6: a list that counts only with members that lag is finished first.
  const bool is_finished = promises.have >= LeastOpeningQuorum(SizesOf(found));
  quorums.to_show.push_back({target.members, is_change || !is_finished
                                                 ? LeastOpeningQuorum(sizes)
                                                 : sizes.write_quorum});
  return quorums;
}

}  // namespace alpheus
