// SPDX-License-Identifier: Apache-2.0
// opening_quorums: whose promises and installations an opening needs while the
// members of a log, W or incarnations change.
//
// Idea: a configuration is in force as long as a primary could open the log by
// it. It changes by an opening, from the configuration c that the highest log
// epoch E names to a `target`, and such an opening may be cut off anywhere:
// then some members have installed the target and others have not. So each
// opening looks at what the replicas that answered have, and takes care of
// every configuration that it finds: it is *settled* if so many of its members
// have installed E's that no opening quorum of it is left; else its quorums
// count, too, or those who still have it don't.
//
// With OQ(c) = max(N - W + 1, W), which is what a primary of c needs:
//
//   a change is possible   W(c) members stay (S), with their incarnations; and
//     (CheckChange)        OQ(target) >= N(c) - OQ(c) + 1
//   to choose              OQ(E's) replicas that E's configuration names and
//     (JudgePromises)      that are not blank have answered; one that has
//                          another configuration a counts only if a is settled
//                          or can be ended: OQ(a) of a's members have answered
//                          whose own lists are cared for in the same way (OQ5),
//                          R(a) of whom are not suspect and were surely not
//                          replaced (OQ4), and B(a) of whom the target names. A
//                          change needs OQ(E's) that have E's themselves, or
//                          the target by an attempt before (OQ6), and
//                          OQ(target) of the target's, blank newcomers among
//                          them
//   to show                W of the target's members have installed (a change,
//     (QuorumsToInstall)   and where fewer than OQ have E's, OQ6: OQ), and B(a)
//                          of each a that counted and is not settled. Newcomers
//                          begin when B(a) of each, and W(c) of S that are no
//                          newcomers, have: before that they hold nothing
//
// B(a) = N - OQ(a) + 1 is so many that no opening quorum of a is left. Why this
// ends a: OQ(a) have promised, so that nobody gets W(a) any more who writes by
// a, and what was shown by a has answered; and two openings that each end a, or
// one that ends it and one by it, meet in a replica that the earlier one has
// installed or the later one has fenced, since OQ(a) + B(a) > N.
//
// Invariants:
//   OQ1. From the moment at which the target can be opened by itself, c cannot
//        be opened any more, nor any configuration before it: so long only
//        members of S have installed the target, and OQ(target) of them are too
//        many for an opening quorum of c. They refuse primaries of an older
//        list (CheckConfiguration of replica_server.h), whatever epoch they
//        installed it with: that is what *settled* rests on.
//   OQ2. W(c) replicas that hold everything durable have the target before any
//        newcomer has; and what promised in an opening meets every W(c):
//        P-INV-18.
//   OQ3. A newcomer counts for no W before it has installed, and for no promise
//        but where OQ(c) have promised, or c is over (OQ7, OQ8): what its
//        predecessor promised and acknowledged is lost (P-H16).
//   OQ4. Who leaves promises for the configuration a that it was a member of,
//        too. But a may have been followed unseen by an a' that has another
//        replica in its place, and it be the old one come back: then what it
//        says is nothing that holds for a'. E's configuration names the newest
//        replica of each node; of the others, R(a) takes only whom nothing can
//        have replaced: OQ(a) of a's members have a list that names that
//        replica, one older than a, or nothing yet, whereas to show an a' takes
//        B(a) of them with a', or with what follows it and names whom it does.
//        They say so also if they say nothing for a (OQ5): OQ(a) must who do,
//        so that no other list is in force unseen.
//   OQ5. Lists end together: who has a list b that is not cared for says
//        nothing for a list a before it either. Else those who lag behind with
//        a would count for what follows b, while b is in force: a counts by
//        OQ(a) who all meet the B(a) that b was shown by.
//   OQ6. When the log is shown by a list, OQ of its members have it: those who
//        counted with an older one have installed. And it is changed only by OQ
//        who have it, or have what it is changed to. So when a list is made
//        from c, nothing before c can be opened any more, and what is in force
//        is c, or was made from c. Why that keeps two of those apart: an
//        opening by t, made from c, counts OQ(t) >= B(c) of c's members; if it
//        did not see that c was opened since, one of them was among the OQ(c)
//        that had c then, has it still, and counts only if OQ(c) answered, who
//        meet whoever installed then. Of two made from c, the later one was
//        made by OQ(c) who had c or that one: the other had too few, and grows
//        only by such as end c (OQ7).
//   OQ7. Each list t says what it was made from, c (Configuration::made_from).
//        Until OQ have t, or a newcomer has it, whoever opens by it ends c,
//        also where nobody answers who has c: those who had it may have t by
//        attempts that were cut off before they had ended it, and others a
//        rival that was made from c. And newcomers of t count where c is
//        settled or ends, whatever an operator calls the list before: with one
//        that is older the log could be in force by c all the while. Before the
//        first of them gets t, B(c) have installed it by one epoch, above all
//        by which c was opened: of a replacement, which keeps the id, some may
//        have t by an older one, and go back to c.
//   OQ8. A blank member of a list a never had it: it promises for a, and knows
//        what it did by a, which is nothing. It may be in the place of one who
//        did something by c, what a was made from: so blank ones count for a
//        only where c is settled or ends as well. Else one replica that a
//        change left a on, with newcomers that are blank, could never be
//        heeded.
//   OQ9. Who has the target itself, as it is made from c now, has it by an
//        attempt before, and need not end it: the opening goes by it. Nothing
//        is in force by it: OQ of it must answer, and meet those by whom the
//        log was shown by it after c was opened last; nor is c opened after
//        that.
// Thread safety: pure.
// References: protocol P-A4.4, P-A5, P-H16 to P-H18; docs/design/recovery.md,
// "Changing the members".
#ifndef ALPHEUS_RECOVERY_OPENING_QUORUMS_H_
#define ALPHEUS_RECOVERY_OPENING_QUORUMS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "quorum/quorum.h"
#include "recovery/answer.h"
#include "recovery/chooser.h"

namespace alpheus {

// N, W and the least R of what superlines record.
QuorumSizes SizesOf(const MemberList& list);

// A change of the configuration that an opening is to make.
struct MembersChange {
  // Before and after; the nodes in the order of their numbers.
  uint64_t from_id = 1;
  QuorumSizes from;
  std::vector<NodeId> from_nodes;
  uint64_t to_id = 1;
  QuorumSizes to;
  std::vector<NodeId> to_nodes;
  // Of both: their replica is lost, and the one that is there is another.
  std::vector<NodeId> replaced;
};

// Whether an opening can make the change, whatever is cut off in its middle.
// Errors: InvalidArgument (nothing changes; sizes and nodes do not fit; a node
// that is replaced is not in both; the id goes back, or stays though nodes or W
// change); FailedPrecondition (more members leave at once than may, or the new
// quorums are too small: what to do instead).
absl::Status CheckChange(const MembersChange& change);

// "configuration 2 of nodes 1, 2, 4 (N = 3, W = 2)".
std::string DescribeList(uint64_t id, const std::vector<NodeId>& nodes,
                         uint32_t write_quorum);
std::string DescribeList(const MemberList& list);

// Whether a log that has the configuration `found` is one to make the change
// of. Errors: FailedPrecondition (it is neither the one before nor the one
// after the change: both are named, with nodes, N and W).
absl::Status CheckFound(const MembersChange& change,
                        const Configuration& found);

// The configuration that the change leads to. `answers` tell the incarnations
// of newcomers: of nodes that E's configuration does not name, and of those
// that are replaced.
// Errors: FailedPrecondition (E's configuration is neither the one before nor
// the one after the change; what a newcomer holds is of an earlier membership);
// Unavailable (a newcomer has not answered).
absl::StatusOr<Configuration> TargetOf(const MembersChange& change,
                                       const Decision& decision,
                                       std::span<const Answer> answers);

// What has become of the list that E's configuration was made from.
enum class Origin {
  kUnknown,       // there is none, or E's does not say
  kSettled,       // nobody can open the log by it any more
  kEnds,          // as an unsettled one that somebody has
  kMayBeInForce,  // and can't be ended
};

// Which configurations count in an opening that installs `target`, by what was
// answered.
struct Promises {
  // Who has E's configuration, or one that is settled or can be ended.
  AnswerSet heeded = 0;
  AnswerSet counts = 0;  // for OQ of E's configuration
  uint32_t have = 0;     // of those: so many have it themselves
  Origin origin = Origin::kUnknown;
  // Neither E's nor settled: B of each must have installed.
  std::vector<MemberList> unsettled;
  // A change is made again, and what E's configuration was made from is settled
  // or ends: newcomers count as members of the one after.
  bool is_half_done = false;
};
// `change`: nullptr if the opening makes none.
Promises JudgePromises(const Decision& decision,
                       std::span<const Answer> answers,
                       const Configuration& target,
                       const MembersChange* change);

// OK if OQ(E's) and, in a change, OQ(target) have promised. `needed` of E's
// configuration are, where the operator's R asks for more than OQ.
// Errors: Unavailable (how many did, how many must, who stands against it by
// which configuration, and what to do).
absl::Status CheckPromises(const Promises& promises, const Decision& decision,
                           std::span<const Answer> answers,
                           const Configuration& target, bool is_change,
                           uint32_t needed);

// So many of the members must have installed the epoch.
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
                                std::span<const Answer> answers,
                                const Configuration& target, bool is_change);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_OPENING_QUORUMS_H_
