// SPDX-License-Identifier: Apache-2.0
// fault_budget: who may be hurt how much at the same time, if the log must
// survive it.
//
// Idea: a record is durable on W replicas, and an opening takes OpeningQuorum
// of them. Of replicas that know or show that something is missing
//   lost     for good: at most N - OpeningQuorum, so that openings are possible
//   harmed   lost, hurt or in the middle of a repair: at most W - 1, so that
//            whatever is durable can be read somewhere, and whatever was never
//            acknowledged has its nacks
// Damage that a replica can't know of makes it deny what it had. That is within
// the budget only if nothing needs it: W other media hold each of these
// records, R others have promised and W installed what it forgets, and nobody
// is about to open an epoch (P-A8: rolled back; damaged in the last batch).
//
// N, W and members are those of the configuration in force. Who is no member is
// not struck, and nobody is while a change is under way or was cut off: then
// two configurations count.
//
// Beyond the budget the first two numbers have no bounds. The log may then stay
// closed, with an error, and must not be shorter: what is lost or known to be
// damaged never denies anything. Damage that a replica can't know of stays
// within its bounds: nobody could tell it from a log that never was longer.
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

  // The replica may be lost for good; it may lack records that it knows to have
  // had.
  bool MayLose(int machine) const;
  bool MayHurt(int machine) const;
  // The replica, whose medium is `now`, may be as it was then.
  bool MayRollBack(int machine, const RegionImage& now,
                   const RegionImage& then) const;
  // W other media hold the record that lies in the machine's `image`.
  bool IsSpare(int machine, const RegionImage& image, const ImageRecord& record,
               Epoch log_epoch) const;
  // Whatever happened, the log must open and go on.
  bool MustSurvive() const;

 private:
  // Of a canary: what is done is said to be within the budget.
  bool IsIgnored() const;
  bool IsUnlimited() const;
  // Whose N and W are meant: the one in force.
  const Configuration& configuration() const;
  std::vector<int> Members() const;
  int OpeningQuorumNow() const;
  int WriteQuorumNow() const;
  bool IsLost(int machine) const;
  bool IsOpenToHarm(int machine) const;
  int Lost(int more) const;
  // As if `more` was one of them; -1: none.
  int Harmed(int more) const;
  bool IsForgettable(int machine, Epoch promised, Epoch log_epoch) const;

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_FAULT_BUDGET_H_
