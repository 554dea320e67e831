// SPDX-License-Identifier: Apache-2.0
// fault_budget: bounds the simultaneous damage that the log must survive.
//
// Idea: a record is durable on W replicas, and an opening takes OQ of them, the
// opening quorum. The budget counts replicas that know or show that something
// is missing:
//   lost     for good: at most N - OQ, so that openings are possible
//   harmed   lost, damaged or in the middle of a repair: at most W - 1, so that
//            every durable record can be read somewhere, and every record that
//            was never acknowledged gets its nacks
// Damage that a replica can't know of makes it deny what it had. The budget
// allows such damage only if nothing needs what is denied: W other media hold
// each of these records, R others have promised and W installed what the
// replica forgets, and nobody is about to open an epoch (P-A8: rolled back;
// damaged in the last batch).
//
// N, W and members are those of the configuration in force. Other machines are
// not struck, and none is while a change is in progress or was interrupted:
// then two configurations count.
//
// Beyond the budget the first two numbers have no bounds. Then the log may stay
// closed, with an error, and must not be shorter: lost or known damage never
// denies anything. Damage that a replica can't know of stays within its bounds,
// since nobody could tell it from a log that never was longer.
// Thread safety: one thread.
// References: protocol P-A8, P-C6, P-C8, P-H9, P-H16.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_FAULT_BUDGET_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_FAULT_BUDGET_H_

#include <vector>

#include "tools/sim/faults/region_damage.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class FaultBudget {
 public:
  explicit FaultBudget(World& world) : world_(world) {}

  // Returns whether the replica may be lost for good; or may lack records that
  // it knows to have had.
  bool MayLose(int machine) const;
  bool MayHurt(int machine) const;
  // Returns whether the replica, whose medium is `now`, may go back to an older
  // state.
  bool MayRollBack(int machine, const RegionImage& now,
                   const RegionImage& then) const;
  // Returns whether W other media have the record in the machine's `image`.
  bool IsSpare(int machine, const RegionImage& image, const ImageRecord& record,
               Epoch log_epoch) const;
  // Returns whether the log must open and continue after everything that
  // happened.
  bool MustSurvive() const;

 private:
  // For a canary: treats every fault as within the budget.
  bool IsIgnored() const;
  bool IsUnlimited() const;
  // Returns the configuration in force, whose N and W count.
  const Configuration& configuration() const;
  std::vector<int> Members() const;
  int OpeningQuorumNow() const;
  int WriteQuorumNow() const;
  bool IsLost(int machine) const;
  bool IsOpenToHarm(int machine) const;
  int Lost(int more) const;
  // Returns the number as if `more` was one of them; -1: none.
  int Harmed(int more) const;
  bool IsForgettable(int machine, Epoch promised, Epoch log_epoch) const;

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_FAULT_BUDGET_H_
