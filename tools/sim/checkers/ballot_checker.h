// SPDX-License-Identifier: Apache-2.0
// ballot_checker: records which process got which ballot, and the register of a
// membership service at that time.
//
// Checked:
//   P-INV-4  no ballot of a register is given to two processes (MB1 of
//            membership.h); no node is given a ballot, from whatever source,
//            that another node wrote to a register
//   P-A4.1   a ballot is above every promise in its question (MB2). A register
//            had it before it was given, written by the process that got it
//            (MB3). Each one written is above the one before, with a counter of
//            its own
// Not checked: that a register which was rolled back gives no counter again;
// the register knows nothing of it. Node and process in the ballot, and
// promises, then tell the two apart (BA4 of ballot.h).
// Thread safety: one thread.
// References: protocol P-A4.1, P-H4, P-H5; quorum/membership/membership.h.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_BALLOT_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_BALLOT_CHECKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

class BallotChecker {
 public:
  explicit BallotChecker(Oracle& oracle) : oracle_(oracle) {}

  // Notes that the register holds another ballot. `before`: 0 for none.
  void Written(Epoch before, Epoch ballot, const quorum::PrimaryId& writer);
  // Notes that a process is given a ballot.
  void Assigned(const quorum::BallotQuestion& question, Epoch ballot,
                const quorum::PrimaryId& process, bool is_of_register);

  uint64_t given() const { return assigned_; }

 private:
  void JudgeOwner(Epoch ballot, const quorum::PrimaryId& process);
  // Returns who wrote that ballot, other than `process`; nullptr: nobody.
  const quorum::PrimaryId* OtherWriterOf(
      Epoch ballot, const quorum::PrimaryId& process) const;
  void ViolateByWriter(Epoch ballot, const quorum::PrimaryId& writer,
                       const quorum::PrimaryId& process);

  Oracle& oracle_;
  std::set<std::pair<Epoch, quorum::PrimaryId>> written_;
  std::map<Epoch, quorum::PrimaryId> owners_;
  uint64_t assigned_ = 0;
};

// Ballots of another source, which the checker sees.
class CheckedBallots final : public quorum::BallotSource {
 public:
  // All must outlive it.
  CheckedBallots(quorum::BallotSource& source, BallotChecker& checker,
                 const quorum::PrimaryId& process)
      : source_(source), checker_(checker), process_(process) {}

  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion& question) override;

 private:
  class Request;

  quorum::BallotSource& source_;
  BallotChecker& checker_;
  const quorum::PrimaryId process_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_BALLOT_CHECKER_H_
