// SPDX-License-Identifier: Apache-2.0
// operator: somebody who changes the members of the log while it runs.
//
// Idea: what `alpheus replace` and `alpheus reconfigure` do, on any machine: a
// process without a replica opens an epoch that changes the configuration
// (primary_process.h, EpochOpeningOptions::change), and ends. It is a process
// like any other, so that all faults strike it, too, and cut its change off
// anywhere. Nobody waits for it: a second change may begin beside it, from the
// same list of members or an older one.
//
//   list         one member more, less or another one, and any W; often from
//                the list that was made last, at times from an older one
//   replacement  of a member whose replica is gone for good; by lot its medium
//                is exchanged, within the fault budget
//   again        a change that was begun before, whatever became of it
//   files        the list that was made last is given to the machines one after
//                the other; at times a machine has one that was not made yet
//
// Before a change, nodes that are to join get an empty replica. One that was a
// member and is none any more is removed there first, once no later list that
// was ever written names it; else it stays, and the change is to be refused.
//
// When faults have ended, it makes changes that were cut off again until the
// configuration in force is on all members, and gives all machines its list. It
// does what docs/use/operating.md says; if that is of no avail, it is a
// violation.
//
// Thread safety: one thread.
// References: api/admin/change_members.h; docs/design/recovery.md, "Changing
// the members".
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_OPERATOR_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_OPERATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"
#include "recovery/opening/opening_quorums.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Of lists by number. With a replaced machine both are one.
struct ListChange {
  size_t from = 0;
  size_t to = 0;
  std::vector<int> replaced;
};

class Operator {
 public:
  // Begins by itself.
  explicit Operator(World& world);

  const ListChange& change(size_t number) const { return changes_[number]; }
  MembersChange Describe(const ListChange& change) const;

  // By the process of a change.
  void Made(size_t number, Epoch epoch);
  void Failed(const absl::Status& status);

  // No more changes but those that were cut off.
  void Settle();
  // It makes a change, and nobody is to run the log meanwhile: here no
  // application gives its replica up to who opens a new epoch.
  bool wants_rest() const { return settles_ && IsUnderWay(); }
  // Requires: settled. All machines have its list.
  void GiveListInForce();

 private:
  void Act();
  void SettleOn();
  std::optional<size_t> InTurn(size_t round);
  std::optional<size_t> ToNewestEpoch(int machine);
  void Stop(int machine);
  void StartStopped();
  bool IsUnderWay() const;
  void LookAtStatus();
  std::optional<size_t> NewestOnMedia() const;
  // That the replica of the machine has.
  std::optional<size_t> ListOnMedium(int machine) const;
  void GiveFiles();
  std::optional<size_t> Draw();
  std::optional<size_t> DrawReplacement();
  std::optional<size_t> DrawList();
  std::optional<size_t> NewNumberFor(size_t list);
  std::optional<size_t> Add(ListChange change);
  void ExchangeMedium();
  bool Prepare(const ListChange& change);
  bool PrepareNewcomer(int number, const ListChange& change);
  bool IsRemovable(int machine) const;
  void Renew(World::Machine& machine);
  void EndApplications();
  bool Begin(size_t number);

  World& world_;
  Random random_;
  std::vector<ListChange> changes_;
  size_t made_ = 0;  // the list of the highest epoch that a change has opened
  Epoch made_in_;
  uint64_t incarnations_ = 0;
  bool settles_ = false;
  size_t tries_ = 0;            // of settling
  std::optional<int> stopped_;  // a machine, while a change is made without it
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_OPERATOR_H_
