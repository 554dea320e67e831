// SPDX-License-Identifier: Apache-2.0
// opening_quorums: the promises and the installations that an opening needs
// while the members of a log, W or incarnations change.
//
// Idea: a configuration (a *list* of members) is in force while a primary could
// open the log by it. An opening changes it: from c, the list that the highest
// log epoch E names, to `target`. Such an opening may be cut off anywhere. Then
// some members have the target and others do not, and several attempts leave
// several lists. So an opening judges each list that its reports show.
//
// For a list a of N members:
//   W(a), R(a)   the quorums of writes and of reads, R = N - W + 1
//   OQ(a)        max(N - W + 1, W): the promises that an opening needs
//   B(a)         N - OQ(a) + 1: the fewest members without which no opening
//                quorum is left
// OQ(a) + B(a) > N: an opening quorum and B(a) members always share one.
//
// A list that a report shows is one of these:
//   c            E's own list
//   retired      at least B(a) members of a have c, so that the rest of a is no
//                opening quorum
//   retirable    this opening can retire it before it shows the log
//   in doubt     none of these: a primary may still open the log by it
//
// A replica is *eligible* if its list is c, is retired or is retirable. Others
// do not count.
//
// Rules, with the function that applies each:
//
//   A change is possible (CheckChange) if
//     * W(c) members stay, with their incarnations (they are S); and
//     * OQ(target) >= B(c).
//   The log is chosen (JudgePromises, CheckPromises) if
//     * OQ(c) members of c that are not blank reported and are eligible; and
//     * in a change, OQ(c) of them have c itself, or the target by an earlier
//       attempt (OPQ6); and
//     * in a change, OQ(target) members of the target reported, blank newcomers
//       among them.
//   A list a that is neither c nor retired is retirable if
//     * OQ(a) of its members reported and are eligible themselves (OPQ5);
//     * R(a) of these are not suspect and were surely not replaced (OPQ4);
//     * the target names B(a) of these.
//   Newcomers are copied to (QuorumsToInstall) if these have installed, since
//   until then newcomers hold nothing:
//     * W(c) members of S, except where a half-done change is made again;
//     * B(a) members of each list a that this opening retires.
//   The log is shown (QuorumsToInstall) if these have installed:
//     * the same; and
//     * W(target) members of the target, or OQ(target) in a change and where
//       fewer than OQ(c) had c (OPQ6).
//
// Example: N = 3, W = 2, so that R = OQ = B = 2. C's medium is lost, and D
// comes for C. c = {A,B,C}, the target is {A,B,D}. The opening is cut off after
// A:
//
//   A has {A,B,D}   B has {A,B,C}   C, if it comes back, has {A,B,C}
//
//   reports   E's list   {A,B,C}
//   A, B      {A,B,D}    retirable: 2 reported, and both stay. B installs, then
//                        only C has the old list: it is retired.
//   A, C      {A,B,D}    in doubt: the target does not name C. Wait for B.
//   B, C      {A,B,C}    is c: they are OQ, and open by it.
//
// Why a retired list stays closed:
//   1. Past: OQ(a) members promised. So no primary that writes by a gets W(a)
//      acknowledgements any more, and all that was shown by a is in the
//      reports.
//   2. Competing openings: another opening retires a or opens by a. Its OQ(a)
//      promises share a replica with our B(a) installations. If it came later,
//      it sees our list there. If it came earlier, we fenced it there.
//
// Invariants. Each is a rule, then the reason, an example or the limits:
//   OPQ1. Once the target can be opened by itself, neither c nor a list before
//         it can be.
//         Reason: until then only members of S have the target, and OQ(target)
//         >= B(c) of them leave no opening quorum of c. For a replica refuses
//         primaries of a list older than its own (CheckConfiguration of
//         opening_service.h), whatever epoch it installed the list with.
//         *Retired* rests on that, too.
//   OPQ2. Before a newcomer has the target, W(c) replicas that hold everything
//         durable have it. The promises of each opening meet every W(c):
//         P-INV-18.
//   OPQ3. The promises and acknowledgements of a newcomer's predecessor are
//         lost (P-H16). So a newcomer counts for no W before it has installed.
//         Its promise counts only if OQ(c) have promised as well, or c is over
//         (OPQ7, OPQ8).
//   OPQ4. A member that leaves still promises for its old list a. A replica
//         that was replaced must not.
//         Reason: a later list a' may have put another replica in its place
//         unseen, and the old medium may be back. It knows nothing of a'.
//         Case 1: c names the replica. c names the newest replica of each node,
//         so it was not replaced.
//         Case 2: c does not name it. It counts towards R(a) only if OQ(a)
//         members of a have a list that names it, or a list older than a, or
//         are blank. To show a', B(a) members must have a' or a later list,
//         which names the new replica. The two sets share a member, so there is
//         no such a'.
//         Limit: the members of case 2 need not be eligible. Retiring a still
//         takes OQ(a) that are, so that no other list is in force unseen.
//   OPQ5. Lists are retired together: a replica with a list b that can't be
//         retired says nothing for a list a before b either.
//         Reason: replicas that lag with a could otherwise count for a list
//         after b, while b is in force. With this rule OQ(a) eligible members
//         retire a. They share a member with the B(a) that had installed when b
//         was shown.
//   OPQ6. When the log is shown by a list, OQ of its members have it: members
//         that counted with an older one have installed it. A list is changed
//         only by OQ that have it, or have what it is changed to. So once a
//         list is made from c, no list before c can be opened, and what is in
//         force is c or a list made from c.
//         No two of these are in force:
//         Case 1: c, and t made from c. An opening by t counts OQ(t) >= B(c)
//         members of c. Say c was opened since t was made. One of those members
//         was among the OQ(c) that had c then, and has it still. So it counts
//         only if OQ(c) reported, and these meet the replicas that installed
//         then: the opening sees it.
//         Case 2: t and u, both made from c, u later. u was made by OQ(c) that
//         had c or u, so t had too few members. t gains members only by
//         openings that retire c (OPQ7).
//   OPQ7. Each list t names the list c that it was made from
//         (Configuration::made_from). Until OQ(t) have t, or a newcomer has it,
//         an opening by t must retire c, even if no report has c. Newcomers of
//         t count only where c is retired or retirable.
//         Reason: attempts that were cut off before they retired c may have
//         given t to some members, and a competing list made from c to others.
//         Example: the {A,B,D} above is on A alone, and D is blank. A and D are
//         OQ of that list. But of {A,B,C} one reported and two must: B and C
//         may have opened by it, so the opening waits for B.
//         Limit: an operator may name an older list as the one before. Then the
//         log could be in force by c all the while.
//         First newcomer: before it gets t, B(c) members have installed t by
//         one epoch, which is above every epoch that opened by c. (A
//         replacement keeps the list's id. So a member that has t by an older
//         epoch may go back to c, and does not count here.)
//   OPQ8. A blank member of a list a never had a. It promises for a, and it
//         knows what it did by a: nothing. But it may stand in the place of a
//         replica that acted by c, which a was made from. So blank members
//         count for a only where c, too, is retired or retirable.
//         Reason to count them at all: otherwise a replica that a cut-off
//         change left with list a could never become eligible while a's
//         newcomers are blank.
//   OPQ9. A replica that has the target itself, made from the same list, has it
//         by an earlier attempt. Its list need not be retired, since the
//         opening goes by it.
//         Reason: nothing is in force by it unseen, as OQ(target) must report.
//         They meet the members by which the log was shown after c was last
//         opened, and c can't be opened after that.
// Thread safety: pure.
// References: protocol P-A4.4, P-A5, P-H16 to P-H18; docs/design/recovery.md,
// "Changing the members".
#ifndef ALPHEUS_RECOVERY_OPENING_OPENING_QUORUMS_H_
#define ALPHEUS_RECOVERY_OPENING_OPENING_QUORUMS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "recovery/opening/chooser.h"
#include "recovery/protocol/members_change.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// Returns N, W and the least R of a list that superlines record.
quorum::QuorumSizes SizesOf(const MemberList& list);

// Returns OK if an opening can make the change, wherever it may be cut off.
// Errors: InvalidArgument (nothing changes; sizes and nodes do not fit; a
// replaced node is not in both lists; the id goes back, or stays though nodes
// or W change); FailedPrecondition (too many members leave at once, or the new
// quorums are too small; says what to do instead).
absl::Status CheckChange(const MembersChange& change);

// Returns "configuration 2 of nodes 1, 2, 4 (N = 3, W = 2)".
std::string DescribeList(uint64_t id, const std::vector<NodeId>& nodes,
                         uint32_t write_quorum);
std::string DescribeList(const MemberList& list);

// Returns OK if the change applies to a log that has the configuration `found`.
// Errors: FailedPrecondition (`found` is neither the list before nor the one
// after; names both, with nodes, N and W).
absl::Status CheckFound(const MembersChange& change,
                        const Configuration& found);

// Returns the configuration that the change leads to. Incarnations of newcomers
// (nodes that E's configuration does not name, or that are replaced) come from
// `reports`.
// Errors: FailedPrecondition (E's configuration is neither the one before nor
// the one after the change; a newcomer holds a replica of an earlier
// membership); Unavailable (a newcomer has not reported).
absl::StatusOr<Configuration> TargetOf(const MembersChange& change,
                                       const Decision& decision,
                                       std::span<const StateReport> reports);

// State of the list that E's configuration was made from.
enum class ParentState {
  kUnknown,       // none, or E's configuration does not name it
  kRetired,       // no primary can open the log by it any more
  kCanRetire,     // not retired, and this opening can retire it
  kMayBeInForce,  // not retired, and this opening can't retire it
};

// The replicas and lists that count in an opening that installs `target`.
struct Promises {
  // Replicas that have E's configuration, a retired one, or one that can be
  // retired.
  ReportSet eligible = 0;
  ReportSet counts = 0;  // of these, members of E's configuration
  uint32_t have = 0;     // number of `counts` that have E's itself
  ParentState parent = ParentState::kUnknown;
  // Lists that are neither E's nor retired: B of each must install.
  std::vector<MemberList> unretired;
  // True if a change is made again and the list that E's was made from is
  // retired or ends. Newcomers then count as members of the list after it.
  bool is_half_done = false;
};
// Judges the reports. `change` is nullptr if the opening makes none.
Promises JudgePromises(const Decision& decision,
                       std::span<const StateReport> reports,
                       const Configuration& target,
                       const MembersChange* change);

// Returns OK if `needed` members of E's configuration have promised (OQ, or the
// operator's R if it is larger) and, in a change, OQ(target) of the target's.
// Errors: Unavailable (how many did, how many must; which members stand against
// it, by which configuration; what to do).
absl::Status CheckPromises(const Promises& promises, const Decision& decision,
                           std::span<const StateReport> reports,
                           const Configuration& target, bool is_change,
                           uint32_t needed);

// Number of the members that must have installed the epoch.
struct InstallQuorum {
  std::vector<Member> members;
  uint32_t needed = 0;

  bool operator==(const InstallQuorum&) const = default;
};
struct InstallQuorums {
  std::vector<InstallQuorum> before_newcomers;
  std::vector<InstallQuorum> to_show;
};
InstallQuorums QuorumsToInstall(const Promises& promises,
                                const Decision& decision,
                                std::span<const StateReport> reports,
                                const Configuration& target, bool is_change);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_OPENING_QUORUMS_H_
