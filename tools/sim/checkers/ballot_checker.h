// SPDX-License-Identifier: Apache-2.0
// ballot_checker: who was given which ballot, and what the register of a
// membership service said at that time.
//
// What is held:
//   P-INV-4  no ballot of a register is given to two processes (MB1 of
//            membership.h)
//   P-A4.1   a ballot is above every promise that it was asked to be above
//            (MB2); of a register it was written there, by the process that is
//            given it, before (MB3), and each that is written is above the one
//            before, with a counter of its own
// What it can't hold: that a register which was rolled back gives no counter
// again: it knows nothing of it. Node and process in the ballot, and promises,
// then tell the two apart (BA4 of ballot.h).
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
#include "tools/sim/world/referee.h"

namespace alpheus::sim {

class BallotChecker {
 public:
  explicit BallotChecker(Referee& referee) : referee_(referee) {}

  // The register holds another ballot now. `before`: 0 for none.
  void Written(Epoch before, Epoch ballot, const PrimaryId& writer);
  // A process is given a ballot.
  void Given(const BallotQuestion& question, Epoch ballot,
             const PrimaryId& process, bool is_of_register);

  uint64_t given() const { return given_; }

 private:
  void JudgeOwner(Epoch ballot, const PrimaryId& process);

  Referee& referee_;
  std::set<std::pair<Epoch, PrimaryId>> written_;
  std::map<Epoch, PrimaryId> owners_;
  uint64_t given_ = 0;
};

// Ballots of another source, which are told to the checker.
class CheckedBallots final : public BallotSource {
 public:
  // All must outlive it.
  CheckedBallots(BallotSource& source, BallotChecker& checker,
                 const PrimaryId& process, bool is_of_register)
      : source_(source),
        checker_(checker),
        process_(process),
        is_of_register_(is_of_register) {}

  std::unique_ptr<BallotRequest> Ask(const BallotQuestion& question) override;

 private:
  class Request;

  BallotSource& source_;
  BallotChecker& checker_;
  const PrimaryId process_;
  const bool is_of_register_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_BALLOT_CHECKER_H_
